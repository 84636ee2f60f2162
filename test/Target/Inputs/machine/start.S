/*===- start.S - boot sector that calls main --------------------*- asm -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* The boot sector of a disk that contains the whole program. Loads the program to
 * its link address, below 640 KiB, enters 64-bit mode, enables all vector registers
 * of the CPU, and calls main. */

  .section .boot, "ax"
  .code16
  .globl start
start:
  xorw %ax, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movw $0x7c00, %sp
  movw $sectors, %cx
read:
  movw $packet, %si
  movb $0x42, %ah
  int $0x13
  jc stop
  addw $(kRead * 512 / 16), packet + 6
  addl $kRead, packet + 8
  subw $kRead, %cx
  ja read

  cli
  lgdt gdt_pointer
  /* Page tables at 0x1000 map the first 2 MiB as one page. */
  movw $0x1000, %di
  xorl %eax, %eax
  movw $(3 * 1024), %cx
  rep stosl
  movl $0x2003, 0x1000
  movl $0x3003, 0x2000
  movl $0x83, 0x3000
  movl $0x1000, %eax
  movl %eax, %cr3
  movl $1, %eax
  cpuid
  andl $(1 << 26), %ecx /* XSAVE; OSXSAVE is bit 18 of CR4 */
  shrl $8, %ecx
  movl %ecx, %ebp
  movl %cr4, %eax
  orl $0x620, %eax /* PAE, OSFXSR, OSXMMEXCPT */
  orl %ebp, %eax
  movl %eax, %cr4
  movl $0xc0000080, %ecx
  rdmsr
  orl $0x100, %eax /* LME */
  wrmsr
  movl %cr0, %eax
  andl $~4, %eax
  orl $0x80000023, %eax /* PG, NE, MP, PE */
  movl %eax, %cr0
  ljmpl $8, $long_mode
stop:
  hlt
  jmp stop

  .set kRead, 64
  .align 4
packet:
  .byte 16, 0
  .word kRead, 0, 0x7e0
  .quad 1
gdt:
  .quad 0, 0x00209a0000000000, 0x0000920000000000
gdt_pointer:
  .word 23
  .long gdt
  .org 510
  .word 0xaa55

  .code64
long_mode:
  movw $16, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movl $0x9f000, %esp
  movl $bss_begin, %edi
  movl $bss_end, %ecx
  subl %edi, %ecx
  xorl %eax, %eax
  rep stosb
  testl %ebp, %ebp
  jz 1f
  movl $0xd, %eax
  xorl %ecx, %ecx
  cpuid
  andl $0xe7, %eax /* x87, SSE, AVX, AVX-512 */
  xorl %ecx, %ecx
  xorl %edx, %edx
  xsetbv
1:
  call main
  /* Bochs exits when this word is written to its port. */
  movw $0x8900, %dx
  leaq shutdown(%rip), %rsi
  movl $8, %ecx
  rep outsb
  hlt
shutdown:
  .ascii "Shutdown"
