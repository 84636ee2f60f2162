//===- refused.c - Libraries that must be refused -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Tells the test that the code of the library has run.
__attribute__((constructor)) static void loaded(void) {
  setenv("POSENC_TEST_LOADED", "1", 1);
}

#define HEAD "{\"posenc\":\"0.1.0\",\"abi\":1,\"prefix\":\"bad\",\"functions\":"
#define FUNCTION(SYMBOL)                                                       \
  "[{\"name\":\"f\",\"symbol\":\"" SYMBOL                                      \
  "\",\"inputs\":[],\"outputs\":[],\"sizes\":[]}]}"

int32_t bad_f(void);
int32_t bad_f(void) { return 0; }

#if VARIANT == 1    // no metadata function
#elif VARIANT == 2  // two metadata functions
const char *bad_metadata(void);
const char *bad_metadata(void) { return HEAD FUNCTION("bad_f"); }
const char *worse_metadata(void);
const char *worse_metadata(void) { return HEAD FUNCTION("bad_f"); }
#elif VARIANT == 3  // the metadata is an object, not a function
const char *bad_metadata[2] = {HEAD FUNCTION("bad_f"), NULL};
#elif VARIANT == 4  // a hidden metadata function
__attribute__((visibility("hidden"))) const char *bad_metadata(void);
const char *bad_metadata(void) { return HEAD FUNCTION("bad_f"); }
#elif VARIANT == 5  // an undefined metadata function
const char *bad_metadata(void);
const char *other(void);
const char *other(void) { return bad_metadata(); }
#elif VARIANT == 6  // a missing function
const char *bad_metadata(void);
const char *bad_metadata(void) { return HEAD FUNCTION("bad_g"); }
#elif VARIANT == 7  // the prefix of another library
int32_t good_f(void);
int32_t good_f(void) { return 0; }
const char *good_metadata(void);
const char *good_metadata(void) { return HEAD FUNCTION("bad_f"); }
#elif VARIANT == 8  // metadata that is NULL
const char *bad_metadata(void);
const char *bad_metadata(void) { return NULL; }
#elif VARIANT == 9  // metadata that is not JSON
const char *bad_metadata(void);
const char *bad_metadata(void) { return "not JSON"; }
#elif VARIANT == 10 // a later ABI
const char *bad_metadata(void);
const char *bad_metadata(void) { return "{\"abi\":2}"; }
#elif VARIANT == 11 // a required symbol that does not exist
int32_t posenc_test_nobody_has_this(void);
const char *bad_metadata(void);
const char *bad_metadata(void) {
  return posenc_test_nobody_has_this() ? NULL : HEAD FUNCTION("bad_f");
}
#elif VARIANT == 12 // a workspace symbol that is a variable
const char *bad_metadata(void);
const char *bad_metadata(void) { return HEAD FUNCTION("bad_f"); }
int64_t bad_f_workspace = 1;
#elif VARIANT == 13 // an unrelated function called X_metadata
const char *foreign_get_metadata(const char *key);
const char *foreign_get_metadata(const char *key) { return key + key[0]; }
#endif
