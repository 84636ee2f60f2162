/*===- guard-attention.c - attention stays within its tensors -----*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Each tensor ends or begins at an inaccessible page. Keys and values that
 * belong to no sequence are NaN. */

#include "guarded.h"

#include "attentions.h"

#include "tensors.h"

enum { kMaxTokens = 67, kMaxDim = 67, kHeads = 2, kBatch = 2, kSlots = 4 };
enum Form {
  PREFILL,
  ROTATED,
  DECODE,
  MULTITOKEN,
  PAGED,
  PAGEDDECODE,
  PAGEDMULTITOKEN,
  RAGGED,
  RAGGEDPAGES
};
static const double kTolerance[] = {3e-6, 3e-3};

typedef void (*Function)(void);
typedef int32_t (*Function3)(const DLTensor *, const DLTensor *,
                             const DLTensor *, const DLTensor *out, char *err,
                             size_t errlen);
typedef int32_t (*Function5)(const DLTensor *, const DLTensor *,
                             const DLTensor *, const DLTensor *,
                             const DLTensor *, const DLTensor *out, char *err,
                             size_t errlen);
typedef int32_t (*Function6)(const DLTensor *, const DLTensor *,
                             const DLTensor *, const DLTensor *,
                             const DLTensor *, const DLTensor *,
                             const DLTensor *out, char *err, size_t errlen);

static const struct Case {
  const char *name;
  enum Form form;
  enum DType dtype;
  int dim, valueDim;
  Function function;
} cases[] = {
#include "table.inc"
};

/* Queries, keys, values, up to three lists of integers, and the result. */
enum { Q, K, V, X, Y, Z, O, kNumTensors };
static struct Guarded memory[kNumTensors];

struct Tensor {
  void *data;
  int64_t shape[4];
  int rank;
};

/* One call, with the index of each token among the rows of its tensor. */
struct Call {
  const struct Case *c;
  struct Tensor tensors[kNumTensors];
  int64_t numQueries[kBatch], numKeys[kBatch];
  int64_t queryRow[kBatch], keyRow[kBatch][kMaxTokens + 1];
};

static int isPaged(enum Form form) {
  return form == PAGED || form == PAGEDDECODE || form == PAGEDMULTITOKEN ||
         form == RAGGEDPAGES;
}
static int isRagged(enum Form form) {
  return form == RAGGED || form == RAGGEDPAGES;
}

/* Returns the static number of queries, or 0 if it is dynamic. */
static int64_t getNumQueries(enum Form form) {
  switch (form) {
  case DECODE:
  case PAGEDDECODE:
    return 1;
  case MULTITOKEN:
    return 5;
  case PAGEDMULTITOKEN:
    return 3;
  default:
    return 0;
  }
}

static size_t count(const struct Tensor *tensor) {
  size_t result = 1;
  int i;
  for (i = 0; i < tensor->rank; ++i)
    result *= (size_t)tensor->shape[i];
  return result;
}

static void make(struct Call *call, int number, int atEnd, size_t bytes,
                 int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
  struct Tensor *tensor = &call->tensors[number];
  tensor->rank = rank;
  tensor->shape[0] = a, tensor->shape[1] = b;
  tensor->shape[2] = c, tensor->shape[3] = d;
  bytes *= count(tensor);
  tensor->data = place(&memory[number], bytes, atEnd);
  memset(tensor->data, 0xff, bytes);
}

static void setList(struct Call *call, int number, int atEnd, int64_t a,
                    int64_t b, int64_t c, int size) {
  const int64_t values[] = {a, b, c};
  int32_t *data;
  int i;
  make(call, number, atEnd, sizeof(int32_t), 1, size, 1, 1, 1);
  data = (int32_t *)call->tensors[number].data;
  for (i = 0; i < size; ++i)
    data[i] = (int32_t)values[i];
}

/* Makes the tensors of a call, given the numbers of queries and keys of the
 * first sequence. */
static void prepare(struct Call *call, const struct Case *c, int64_t queries,
                    int64_t keys, int atEnd) {
  size_t bytes = kBytes[c->dtype];
  int64_t blocks = (keys + kSlots - 1) / kSlots, b, j;
  int ragged = isRagged(c->form), paged = isPaged(c->form);
  call->c = c;
  for (b = 0; b < kBatch; ++b) {
    /* Ragged and paged sequences have different lengths and share no token. */
    call->numQueries[b] = ragged && b > 0 ? queries / 3 : queries;
    call->numKeys[b] = b > 0 && (ragged || paged) ? keys / 2 : keys;
    call->queryRow[b] = b * queries;
    for (j = 0; j < call->numKeys[b]; ++j)
      /* Pages in reverse order, alternating between the sequences. */
      call->keyRow[b][j] =
          paged ? ((blocks - 1 - j / kSlots) * kBatch + b) * kSlots + j % kSlots
                : b * keys + j;
  }
  /* Ragged queries and keys have one more row, which belongs to no sequence. */
  if (ragged)
    make(call, Q, atEnd, bytes, 3,
         call->numQueries[0] + call->numQueries[1] + 1, kHeads, c->dim, 1);
  else
    make(call, Q, atEnd, bytes, 4, kBatch, queries, kHeads, c->dim);
  call->tensors[O] = call->tensors[Q];
  if (ragged)
    make(call, O, atEnd, bytes, 3, call->tensors[Q].shape[0], kHeads,
         c->valueDim, 1);
  else
    make(call, O, atEnd, bytes, 4, kBatch, queries, kHeads, c->valueDim);
  for (b = K; b <= V; ++b) {
    int dim = b == K ? c->dim : c->valueDim;
    if (c->form == RAGGED)
      make(call, (int)b, atEnd, bytes, 3,
           call->numKeys[0] + call->numKeys[1] + 1, 1, dim, 1);
    else if (paged)
      make(call, (int)b, atEnd, bytes, 4, blocks * kBatch, kSlots, 1, dim);
    else
      make(call, (int)b, atEnd, bytes, 4, kBatch, keys, 1, dim);
  }
  if (c->form == RAGGED) {
    setList(call, X, atEnd, 0, queries, queries + call->numQueries[1], 3);
    setList(call, Y, atEnd, 0, keys, keys + call->numKeys[1], 3);
  }
  if (paged) {
    int32_t *table;
    setList(call, X, atEnd, call->numKeys[0], call->numKeys[1], 0, 2);
    make(call, Y, atEnd, sizeof(int32_t), 2, kBatch, blocks, 1, 1);
    table = (int32_t *)call->tensors[Y].data;
    for (b = 0; b < kBatch; ++b)
      for (j = 0; j * kSlots < call->numKeys[b]; ++j)
        table[b * blocks + j] = (int32_t)((blocks - 1 - j) * kBatch + b);
  }
  if (c->form == RAGGEDPAGES)
    setList(call, Z, atEnd, 0, queries, queries + call->numQueries[1], 3);

  for (j = 0; j < (int64_t)count(&call->tensors[Q]); ++j)
    store(c->dtype, call->tensors[Q].data, (size_t)j, nextRandom());
  for (b = 0; b < kBatch; ++b)
    for (j = 0; j < call->numKeys[b]; ++j) {
      int lane;
      for (lane = 0; lane < c->dim; ++lane)
        store(c->dtype, call->tensors[K].data,
              (size_t)(call->keyRow[b][j] * c->dim + lane), nextRandom());
      for (lane = 0; lane < c->valueDim; ++lane)
        store(c->dtype, call->tensors[V].data,
              (size_t)(call->keyRow[b][j] * c->valueDim + lane), nextRandom());
    }
}

static void run(struct Call *call) {
  static const int codes[] = {kFloat, kBfloat};
  const struct Case *c = call->c;
  DLTensor t[kNumTensors];
  char message[200] = "";
  int32_t code;
  int i;
  for (i = 0; i < kNumTensors; ++i) {
    int isList = i >= X && i <= Z;
    t[i] = makeTensor(call->tensors[i].data, isList ? kInt : codes[c->dtype],
                      isList ? 32 : 8 * (int)kBytes[c->dtype],
                      call->tensors[i].rank, call->tensors[i].shape, NULL);
  }
  switch (c->form) {
  case PREFILL:
  case ROTATED:
  case DECODE:
  case MULTITOKEN:
    code = ((Function3)c->function)(&t[Q], &t[K], &t[V], &t[O], message,
                                    sizeof(message));
    break;
  case RAGGEDPAGES:
    code = ((Function6)c->function)(&t[Q], &t[K], &t[V], &t[X], &t[Y], &t[Z],
                                    &t[O], message, sizeof(message));
    break;
  default:
    code = ((Function5)c->function)(&t[Q], &t[K], &t[V], &t[X], &t[Y], &t[O],
                                    message, sizeof(message));
  }
  if (code != 0)
    fprintf(stderr, "%s: %s\n", c->name, message);
  CHECK(code == 0);
}

static void loadRow(const struct Case *c, const struct Tensor *tensor,
                    int64_t row, int dim, int64_t index, double *to) {
  double x[kMaxDim];
  int lane;
  for (lane = 0; lane < dim; ++lane)
    x[lane] = load(c->dtype, tensor->data, (size_t)(row * dim + lane));
  for (lane = 0; lane < dim; ++lane)
    to[lane] = c->form == ROTATED
                   ? rotateLane(x, dim, 0, 10000.0, (double)index, lane)
                   : x[lane];
}

static void compare(const struct Call *call, int64_t row, int lane,
                    double expected) {
  const struct Case *c = call->c;
  double actual =
      load(c->dtype, call->tensors[O].data, (size_t)(row * c->valueDim + lane));
  if (!(fabs(actual - expected) <= kTolerance[c->dtype]))
    fprintf(stderr, "%s: row %d element %d: expected %g, found %g\n", c->name,
            (int)row, lane, expected, actual);
  CHECK(fabs(actual - expected) <= kTolerance[c->dtype]);
}

/* Compares a row of the result with the definition of attention. */
static void checkRow(const struct Call *call, int b, int64_t token, int head) {
  static double keys[kMaxTokens + 1][kMaxDim];
  const struct Case *c = call->c;
  int64_t index = token + call->numKeys[b] - call->numQueries[b], j;
  int64_t row = (call->queryRow[b] + token) * kHeads + head;
  double q[kMaxDim], acc[kMaxDim] = {0}, sum = 0;
  int lane;
  loadRow(c, &call->tensors[Q], row, c->dim, index, q);
  for (j = 0; j < call->numKeys[b] && j <= index; ++j) {
    double score = 0;
    /* The keys of the last query serve all others. */
    if (head == 0 && token == call->numQueries[b] - 1)
      loadRow(c, &call->tensors[K], call->keyRow[b][j], c->dim, j, keys[j]);
    for (lane = 0; lane < c->dim; ++lane)
      score += q[lane] * keys[j][lane];
    score = exp(score / sqrt((double)c->dim));
    sum += score;
    for (lane = 0; lane < c->valueDim; ++lane)
      acc[lane] +=
          score * load(c->dtype, call->tensors[V].data,
                       (size_t)(call->keyRow[b][j] * c->valueDim + lane));
  }
  for (lane = 0; lane < c->valueDim; ++lane)
    compare(call, row, lane, sum > 0 ? acc[lane] / sum : 0);
}

static void checkAll(const struct Call *call) {
  const struct Case *c = call->c;
  int64_t token;
  int b, head, lane;
  for (b = 0; b < kBatch; ++b)
    /* Starts with the last token, which sees all keys. */
    for (token = call->numQueries[b] - 1; token >= 0; --token)
      for (head = 0; head < kHeads; ++head)
        checkRow(call, b, token, head);
  if (isRagged(c->form)) {
    int64_t last = call->tensors[Q].shape[0] - 1;
    for (head = 0; head < kHeads; ++head)
      for (lane = 0; lane < c->valueDim; ++lane)
        compare(call, last * kHeads + head, lane, 0);
  }
}

static void checkCase(const struct Case *c, int64_t queries, int64_t keys,
                      int atEnd) {
  static struct Call call;
  prepare(&call, c, queries, keys, atEnd);
  run(&call);
  checkAll(&call);
}

int main(int argc, char **argv) {
  size_t bytes =
      2 * (kMaxTokens + kSlots) * kBatch * kHeads * kMaxDim * sizeof(float);
  size_t i;
  int64_t tokens;
  for (i = 0; i < kNumTensors; ++i)
    memory[i] = makeGuarded(bytes);
  if (argc > 1) {
    /* Controls: one token too many in one tensor; the tensor of equal size is
     * extended. */
    static struct Call call;
    int number = atoi(argv[1]);
    int partner = number == Q ? O : number == O ? Q : K + V - number;
    struct Tensor *other = &call.tensors[partner];
    prepare(&call, &cases[0], 5, 7, 1);
    ++call.tensors[number].shape[1];
    ++other->shape[1];
    other->data =
        place(&memory[partner], count(other) * kBytes[cases[0].dtype], 1);
    run(&call);
    return 0;
  }
  for (i = 0; i < sizeof(cases) / sizeof(*cases); ++i)
    for (tokens = 1; tokens <= kMaxTokens; ++tokens) {
      int64_t numStatic = getNumQueries(cases[i].form);
      int atEnd;
      for (atEnd = 0; atEnd < 2; ++atEnd) {
        checkCase(&cases[i], numStatic ? numStatic : tokens, tokens, atEnd);
        if (!numStatic)
          checkCase(&cases[i], tokens, kMaxTokens + 1 - tokens, atEnd);
      }
    }
  printf("%d functions\n", (int)(sizeof(cases) / sizeof(*cases)));
  return 0;
}
