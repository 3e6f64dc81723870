/* The custom instructions that put work on a core's pipes, and the custom CSRs. Plain C, read by firmware and
 * models.
 *
 * The real scalar unit's ISA is not public. cm384's is RV64IMAFC_Zicsr_Zifencei (ABI lp64f) plus the two
 * custom opcodes below. The model of work is Ascend C's: the scalar unit runs the program and pushes
 * instructions into in-order queues of the pipes, which run in parallel and meet at flags and barriers.
 *
 * Pipe instructions: opcode custom-1 (0x2b), R4 format. There is no result register: the rd field is the
 * operation (0..31), funct3 the class, funct2 the element type; rs1, rs2, rs3 are 64-bit operands:
 *
 *     .insn r4 0x2b, CLASS, TYPE, x<OPERATION>, rs1, rs2, rs3
 *
 * Host calls: opcode custom-0 (0x0b), R format, funct7 = call number, rd = result, rs1, rs2 = arguments.
 *
 * In a launch of groups (an AIC and its two AIVs run one block) an AIV's block index is 2 * group +
 * sub-block.
 *
 * UBuffer operands are offsets in the core's UBuffer (0..192 Ki - 1), multiples of 32 unless said otherwise.
 */
#ifndef CM384_ABI_ISA_H
#define CM384_ABI_ISA_H

#define CM384_OPCODE_HOST 0x0b
#define CM384_OPCODE_PIPE 0x2b

/* Pipes, numbered as on the part. */
enum cm384_pipe {
  CM384_PIPE_S = 0,
  CM384_PIPE_V = 1,
  CM384_PIPE_MTE1 = 2,
  CM384_PIPE_MTE2 = 3,
  CM384_PIPE_MTE3 = 4,
  CM384_PIPE_M = 5,
  CM384_PIPE_ALL = 6,
  CM384_PIPE_FIX = 7
};

/* funct3: class of a pipe instruction. */
enum cm384_class {
  CM384_CLASS_SYNC = 0,
  CM384_CLASS_MTE = 1,
  CM384_CLASS_VECTOR = 2,  /* element-wise */
  CM384_CLASS_REDUCE = 3,  /* reductions, compare, select, gather */
  CM384_CLASS_CONVERT = 4, /* casts; operation = pair of types, funct2 = rounding */
  CM384_CLASS_CUBE = 5     /* cube cores: MMAD and what feeds and drains it */
};

/* CM384_CLASS_SYNC: operation (rd). funct2 = 0. */
enum cm384_sync {
  /* rs1 = source pipe | destination pipe << 8 | event id (0..7) << 16. Queued in the source pipe; sets the
     flag when all its earlier instructions have completed; later ones do not wait for that. A flag is one
     bit: setting it while it is set is an error. Source and destination differ; pipes S, V, MTE2, MTE3 of a
     vector core, S, M, MTE1, MTE2, FIX, MTE3 of a cube core. */
  CM384_SET_FLAG = 0,
  /* Same operand. Queued in the destination pipe (destination S: blocks the scalar unit) until the flag is
     set; clears it. */
  CM384_WAIT_FLAG = 1,
  /* rs1 = pipe (or PIPE_ALL: the scalar unit waits until all pipes are idle and all their accesses are
     complete). Later instructions of that pipe wait for the completion of its earlier ones. PIPE_S: no
     effect. Accesses of a pipe that no barrier or flag orders may be performed in any order. */
  CM384_PIPE_BARRIER = 2,
  /* rs1 = pipe | mode << 8 | flag id (0..15) << 16. Fires when that pipe's earlier work is complete; then
     counts up the flag of: mode 0, every core of the same kind of the launch on this die (a barrier: each
     core's wait needs one set from all of them); mode 1, both AIVs of the group; mode 2, set by an AIC: both
     AIVs of its group; set by both AIVs of a group: its AIC (one count for the two sets). */
  CM384_CROSS_CORE_SET = 3,
  /* rs1 = flag id; blocks the scalar unit until the flag's counter is positive, counts it down. */
  CM384_CROSS_CORE_WAIT = 4,
  /* rs1 = low 64, rs2 = high 64 bits of the vector mask (bit i: element i of a repeat takes part). Holds for
     the vector instructions issued later. Reset value: all ones. */
  CM384_SET_MASK = 5,
  /* rs1 = source stride, rs2 = destination stride of later MTE copies: distance from the start of one burst
     to the start of the next, in bytes (signed on the GM side; a multiple of 32 on the UBuffer side). Reset
     value: 0 and 0, so set it before a copy of more than one burst. */
  CM384_SET_STRIDE = 6,
  /* Clean and invalidate the scalar data cache. rs1 = address, rs2 = bytes (0: the whole cache). */
  CM384_DCCI = 7,
  /* Marks one turn of a polling loop over GM: rs1 = address, rs2 = bytes (own die). With poll elision on, the
     scalar unit parks until a write has touched the range since the start of the turn that read it, and
     resumes on a multiple of the poll period (the time from the previous mark); the skipped polls are charged
     to memory. rs2 = 0: the loop is left; a loop that is entered again begins with a turn of its own. With
     elision off: no effect. */
  CM384_POLL_MARK = 8,
  /* rs1 = 0/1: whether later MTE2 reads and MTE3 writes allocate in L2 (reset: 1). */
  CM384_SET_L2_ALLOCATE = 9,
  /* rs1 = phase number (0..31): the study's phase marker; no time. The table of names is the kernel's. */
  CM384_PHASE = 10,
  /* rs1 = what later copies from the UBuffer to GM do at the target (enum cm384_atomic; reset:
     CM384_ATOMIC_NONE). */
  CM384_SET_ATOMIC = 11,
  /* Padding of later copies from GM to the UBuffer: rs1 = bytes before each burst (7:0, at most 32) | bytes
     after it (15:8, at most 32) | size of an element (23:16: 1, 2 or 4) | its value << 32. A burst then takes
     the three together, rounded up to 32 B, all but the burst filled with the value. rs1 = 0 (reset): none,
     the rounding is filled with zeros. */
  CM384_SET_PADDING = 12
};
/* Sums wrap (integers) or are rounded to nearest even (FP16 and BF16 from FP32). A larger or smaller float is
   that of the vector unit's MAX and MIN. */
enum cm384_atomic {
  CM384_ATOMIC_NONE = 0,    /* write */
  CM384_ATOMIC_ADD_S32 = 1, /* as CM384_MTE_UB_TO_GM_ADD_S32 */
  CM384_ATOMIC_ADD_F32 = 2,
  CM384_ATOMIC_ADD_S16 = 3,
  CM384_ATOMIC_ADD_S8 = 4,
  CM384_ATOMIC_ADD_F16 = 5,
  CM384_ATOMIC_ADD_BF16 = 6,
  CM384_ATOMIC_MAX_S32 = 7, /* the types in the same order */
  CM384_ATOMIC_MIN_S32 = 13,
  CM384_ATOMIC_MODES = 19
};

/* CM384_CLASS_MTE: operation (rd). rs1 = destination, rs2 = source, rs3 = burst bytes (bits 31:0, 1 or more)
   | burst count (1..65535) << 32. One side is a GM address (any alignment), the other a UBuffer offset (32 B
   aligned). On the UBuffer side a burst is padded to a multiple of 32 B (reads fill the padding with zeros;
   writes do not write it). Strides as set by CM384_SET_STRIDE; count 1 ignores them. Atomic adds need a GM
   address and a burst size that are multiples of 4. */
enum cm384_mte {
  CM384_MTE_GM_TO_UB = 0, /* pipe MTE2 */
  CM384_MTE_UB_TO_GM = 1, /* pipe MTE3; complete when the target's memory has acknowledged all of it */
  CM384_MTE_UB_TO_GM_ADD_S32 = 2, /* pipe MTE3, atomic add at the target, int32 elements */
  CM384_MTE_UB_TO_GM_ADD_F32 = 3,
  /* Cube cores. The local side is an offset in L1 (32 B aligned), else as above. */
  CM384_MTE_GM_TO_L1 = 4, /* pipe MTE2 */
  /* Pipe MTE2. Rows of a matrix (a burst is a row) become NZ: 32 B block b of row r goes to destination + b *
     destination stride + r * 32. The destination stride is what one column of blocks takes, rows rounded up
     to 16 times 32 B as a rule. */
  CM384_MTE_GM_TO_L1_ND2NZ = 5,
  CM384_MTE_L1_TO_GM = 6 /* pipe MTE3 */
};

/* CM384_CLASS_CUBE: cube cores. funct2: element type of A and B. */
enum cm384_cube_type { CM384_CUBE_S8 = 0, CM384_CUBE_F16 = 1, CM384_CUBE_BF16 = 2, CM384_CUBE_F32 = 3 };

/* Sizes: L1 512 KiB, L0A and L0B 64 KiB, L0C 128 KiB, bias table 1 KiB, fixpipe buffer 2 KiB. A fractal is 16
   rows of 32 B, 512 B, row after row; c0 is the elements of 32 B. In L1 a matrix of r rows stands in NZ:
   column after column of 32 B blocks, a column r rounded up to 16 rows high. L0A holds A (m rows, k columns)
   as fractals: fractal (i, j) of block row i and block column j at (i * columns + j) * 512. L0B holds the
   transpose of B (n rows, k columns), its fractals the other way round, at (j * rows + i) * 512: all of n for
   the first c0 of k, then for the next. L0C holds C in 16 x 16 elements of 4 B: block column after block
   column, each of m rounded up to 16 rows of 64 B. */
enum cm384_cube {
  /* Pipe MTE1. rs1 = destination offset in L0A (L0B), multiple of 512 | L1 offset, multiple of 32, << 32. rs2
     = bytes from one column of blocks to the next in L1, multiple of 32. rs3 = block rows (15:0) | block
     columns (31:16). */
  CM384_CUBE_LOAD_A = 0,
  CM384_CUBE_LOAD_B = 1,
  /* Pipe MTE1, types of 2 B. L1 holds B itself in NZ: its rows are k, its columns n. Block rows count 16 of
     n, block columns 16 of k in the L0B that results. */
  CM384_CUBE_LOAD_B_TRANSPOSED = 2,
  /* Pipe MTE1: 32 B blocks from L1 to the bias table. rs1 = destination | L1 offset << 32, rs3 = bytes. */
  CM384_CUBE_LOAD_BIAS = 3,
  /* Pipe FIX: 32 B blocks from L1 to the fixpipe buffer, which holds a scale (F32) a column. Operands as
     LOAD_BIAS. */
  CM384_CUBE_LOAD_FIXPIPE = 4,
  /* Pipe M: C = A * B, or C += A * B. rs1 = L0A offset | L0B offset << 32. rs2 = L0C offset, multiple of 1024
     | accumulate << 32: 0 C starts from 0, 1 adds to C, 2 starts from the bias table (bias of column n at 4
     n) | bias table offset << 40. rs3 = m (15:0) | n (31:16) | k (47:32), in elements | S4 << 48: two in a
     byte of S8, low half first. S8 and S4 add in S32 (wraps), the others in F32: products are exact for 2 B
     types, else rounded, and are added in order of k, each sum rounded to nearest even. */
  CM384_CUBE_MMAD = 5,
  /* Pipe FIX: C to GM. rs1 = GM address. rs2 = L0C offset | scale (F32 bits) << 32. rs3 = m (15:0) | n
     (31:16) | operation (39:32, cm384_fixpipe) | relu << 40 | NZ << 41 | wide << 42 | scales of 8 B << 43 |
     offset into the fixpipe buffer << 48. Row r of C goes to GM + r * destination stride. With NZ, column of
     blocks b of m rows of 32 B (wide: of 64 B) goes to GM + b * destination stride. C's block columns are the
     source stride in bytes apart (a multiple of 1024), where it is 0 m rounded up to 16 rows. A scale of 8 B
     is F32 in its low half. An atomic mode holds for the rows as for copies. */
  CM384_CUBE_FIX = 6,
  /* Pipe MTE1: fractal by fractal from L1 to L0A, L0B. rs1 = destination | L1 offset << 32, as LOAD_A. rs2 =
     bytes from step to step in L1 (31:0, signed, a multiple of 32) | in L0 (63:32, a multiple of 512). rs3 =
     steps (15:0) | transpose << 16 | bytes from the first to the second fractal of a step in L0, << 32. A
     step is a fractal; where it is transposed, a square: a fractal of elements of 2 B, of the others two
     that follow each other in L1 (1 B: one below the other, 4 B: one beside the other, before and after). */
  CM384_CUBE_LOAD_2D_A = 7,
  CM384_CUBE_LOAD_2D_B = 8,
  /* Pipe MTE1: an image to the matrix that a convolution multiplies, from L1 to L0A. In L1 stand blocks of c0
     channels one after another, each of height rows of width places of 32 B. Row m of the matrix is an output
     place, row after row of them; its column of blocks j is block j / (filter height * width) of the channels
     at a place of the filter, row after row. Source stride = height (15:0) | width (31:16) | padding left
     (39:32), right (47:40), top (55:48), bottom (63:56). Destination stride = strides across (7:0) and down
     (15:8) | filter's width (24:16) and height (33:25) | dilation across (41:34) and down (49:42). rs1 =
     destination | L1 offset << 32, as LOAD_A. rs2 = first row (15:0) | rows (31:16) | first column of blocks
     (47:32) | columns of blocks (63:48). rs3 = bits of a padded element. Rows behind the last place are 0. */
  CM384_CUBE_LOAD_3D_A = 9,
  /* Fills a buffer. rs1 = destination | buffer << 32: 0 L1 (pipe MTE2, units of 32 B), 1 L0A, 2 L0B (pipe
     MTE1, units of 512 B). rs2 = 4 B that are repeated. rs3 = turns (15:0) | units of a turn (31:16) | units
     between two turns (47:32). */
  CM384_CUBE_FILL = 10,
  /* Pipe FIX: C to L1, as FIX with NZ. rs1 = L1 offset; the destination stride is a multiple of 32. */
  CM384_CUBE_FIX_TO_L1 = 11
};
enum cm384_fixpipe {
  CM384_FIX_KEEP = 0,              /* F32 or S32 as it is */
  CM384_FIX_F32_TO_F16 = 1,        /* nearest even; overflow gives infinity */
  CM384_FIX_F32_TO_BF16 = 2,       /* nearest even */
  CM384_FIX_S32_TO_F16 = 3,        /* times the scale in rs2, in F32, then nearest even */
  CM384_FIX_S32_TO_F16_VECTOR = 4, /* times the column's scale in the fixpipe buffer */
  /* To 8 bit: times the scale in F32, then nearest even; what does not fit becomes the nearest that does. */
  CM384_FIX_F32_TO_S8 = 5,
  CM384_FIX_F32_TO_S8_VECTOR = 6,
  CM384_FIX_S32_TO_S8 = 7,
  CM384_FIX_S32_TO_S8_VECTOR = 8
};

/* funct2 of CM384_CLASS_VECTOR and CM384_CLASS_REDUCE: element type. A repeat is 256 B: 64 elements of 4 B,
 * 128 of 2 B. */
enum cm384_type { CM384_F32 = 0, CM384_F16 = 1, CM384_S32 = 2, CM384_S16 = 3 };

/* Vector operands (classes VECTOR, REDUCE, CONVERT).
     rs1 = destination offset | source-0 offset << 32
     rs2 = source-1 offset, or the scalar (element bits in the low half; a 2 B type uses the low 16 bits) for
           the operations that end in S, for DUP and for AXPY
     rs3 = repeats (7:0; 0: nothing is done) | destination block stride (15:8) | source-0 block stride (23:16)
   | source-1 block stride (31:24) | destination repeat stride (39:32) | source-0 repeat stride (47:40) |
   source-1 repeat stride (55:48)

   Strides count 32 B blocks; block stride 1 and repeat stride 8 mean contiguous. A repeat covers 8 blocks.
   Repeats take effect one after another: repeat i + 1 reads what repeat i wrote (so a destination and
   source-0 repeat stride of 0 accumulates). Within a repeat a source block is the destination block of the
   same number or lies apart from the whole destination; else the result is undefined. Masked-off elements of
   the destination keep their value.

   Values. FP16 arithmetic is done in FP32 and rounded to nearest even after each operation (MADD and AXPY
   round the product, then the sum; FP32 likewise: nothing is fused). Integers wrap. MAX and MIN give NaN when
   an operand is NaN and source 1 when both are equal; RELU(x) = MAX(x, 0). SQRT and DIV are IEEE; REC is 1 /
   x, RSQRT is 1 / SQRT(x), each step rounded; EXP and LN are within 1 unit in the last place and the same on
   every machine. An operation and type not listed here is an error: DIV, EXP, LN, SQRT, RSQRT, REC are for
   F32 and F16, shifts for S32 and S16; all others for all four types. */

/* CM384_CLASS_VECTOR */
enum cm384_vector {
  CM384_VADD = 0,
  CM384_VSUB = 1,
  CM384_VMUL = 2,
  CM384_VDIV = 3,
  CM384_VMAX = 4,
  CM384_VMIN = 5,
  CM384_VADDS = 6,
  CM384_VMULS = 7,
  CM384_VMAXS = 8,
  CM384_VMINS = 9,
  CM384_VABS = 10,
  CM384_VRELU = 11,
  CM384_VEXP = 12,
  CM384_VLN = 13,
  CM384_VSQRT = 14,
  CM384_VRSQRT = 15,
  CM384_VREC = 16, /* 1/x */
  CM384_VDUP = 17, /* scalar to every element */
  CM384_VCOPY = 18,
  CM384_VAND = 19, /* AND, OR, NOT work on the bits of any type */
  CM384_VOR = 20,
  CM384_VNOT = 21,
  CM384_VMADD = 22, /* destination = source-0 * source-1 + destination */
  CM384_VAXPY = 23, /* destination = source-0 * scalar + destination */
  CM384_VSHLS = 24, /* integer shifts by scalar; by the width or more: 0, or the sign for SHRS */
  CM384_VSHRS = 25, /* arithmetic */
  CM384_VSHRU = 26, /* the same of unsigned integers: zeros come in; by the width or more: 0 */
  CM384_VINDEX = 27 /* destination element i of repeat r = scalar + r * elements of a repeat + i */
};

#define CM384_MERGE_STOPS (1ull << 48) /* VMERGE, rs3 */

/* CM384_CLASS_REDUCE. Masked-off elements take no part in reductions; a sum of nothing is 0, a maximum of
   nothing the lowest value of the type (-inf), a minimum the highest. Sums are made pairwise: neighbours
   first, then neighbouring pairs, and so on, a masked-off element counting as +0; FP16 sums round after each
   addition and stop at 65,504 on either side. */
enum cm384_reduce {
  /* One result element a repeat, written at destination + repeat index * destination repeat stride, where
     here the destination (a multiple of the element size) and its repeat stride count elements; the
     destination block stride is not used. With rs2 = 1 VCMAX/VCMIN write {value, index} pairs: two elements
     of the type, the index (lowest of equals; 0 when nothing takes part) as an integer of the same size. A
     maximum or minimum with a NaN in it is NaN, its index that of the first NaN. rs2 = 2: one pair over all
     repeats, the index counted through all of them; 3: {index, value}; 4: the index alone; 5: one value over
     all repeats. VCADD with rs2 = 1: one sum, the repeats' added one after another. With these three, bits
     31:8 of rs2 may hold a count: so many elements, contiguous, whatever repeats, strides and mask say. */
  CM384_VCADD = 0,
  CM384_VCMAX = 1,
  CM384_VCMIN = 2,
  /* One result element a 32 B block: 8 a repeat, contiguous; destination repeat stride counts 8-element
     groups. The destination is a multiple of 8 elements. */
  CM384_VCGADD = 3,
  CM384_VCGMAX = 4,
  CM384_VCGMIN = 5,
  /* Compare with source-1 (V) or a scalar (VS): one bit an element, packed little-endian, contiguous from the
     destination; 64 elements of 4 B give 8 B a repeat, 128 of 2 B give 16 B (destination strides are not
     used; the destination is a multiple of that size). Bits of masked-off elements are 0. Comparisons with
     NaN are false, NE true. */
  CM384_VCMP_EQ = 6,
  CM384_VCMP_NE = 7,
  CM384_VCMP_LT = 8,
  CM384_VCMP_LE = 9,
  CM384_VCMP_GT = 10,
  CM384_VCMP_GE = 11,
  CM384_VCMPS_EQ = 12,
  CM384_VCMPS_NE = 13,
  CM384_VCMPS_LT = 14,
  CM384_VCMPS_LE = 15,
  CM384_VCMPS_GT = 16,
  CM384_VCMPS_GE = 17,
  /* destination = bit ? source-0 : source-1. The bits are packed as compare writes them, repeat after repeat,
     at the UBuffer offset in rs2's high half (multiple of 8 or 16 B as above); source-1's offset is rs2's low
     half. */
  CM384_VSEL = 18,
  /* Gather mask: copies the selected elements of source 0, of all repeats one after another, contiguously to
     the destination. rs2 low half = pattern 1..7 (1: even, 2: odd, 3..6: element 0..3 of each 4, 7: all) or
     0: packed bits at the UBuffer offset in rs2's high half, repeat after repeat; 8: the same, those of a
     repeat at multiples of source 1's repeat stride. Bits 31:8 of rs2: 0, or how many elements each repeat
     has, which may be more than 256 B. The vector mask and the destination strides are not used. */
  CM384_VGATHER_MASK = 19,
  /* Broadcast: element i of source 0 fills block i of the destination; 8 elements a repeat, taken
     contiguously (source strides and the vector mask are not used; source 0 is a multiple of the element
     size). */
  CM384_VBRCB = 20,
  /* destination element i = the element at UBuffer offset (source 0's int32 element i) + rs2 low half;
     offsets are multiples of the element's size. Types of 2 B: source 0 takes 16 blocks a repeat. */
  CM384_VGATHER = 21,
  /* As VSEL, source 1 being the scalar in rs2's low half. */
  CM384_VSELS = 22,
  /* Sums of neighbours: half as many results as elements, 128 B a repeat; the destination (a multiple of 32)
     repeat stride counts these. A result is written where one of its two elements takes part. */
  CM384_VCPADD = 23,
  /* Sorts each 32 elements of source 0 (F32 or F16) by value, largest first, equals in their order, NaN as
     larger than all: destination = structures of 8 B {value (F16: then 2 B of 0), source 1's 4 B element}.
     Everything is contiguous; block and repeat strides and the vector mask are not used. */
  CM384_VSORT32 = 24,
  /* Merges up to four lists of such structures, each sorted, equals by list. rs1 as above, source 0 the first
     list. rs2 = the others' offsets, 20 bits each, from bit 0. rs3 = lengths, 12 bits each, from bit 0 (a
     length of 0: no such list). Lists are multiples of 8, the destination of 32. rs3 bit 48: the merge stops
     when one of its lists is used up; CM384_CSR_MERGED then tells how much it has taken of each. */
  CM384_VMERGE = 25,
  /* 16 x 16 elements of 2 B, rows of 32 B: destination = its transpose. One repeat; neither strides nor the
     vector mask are used. The operands are the same or lie apart. */
  CM384_VTRANSPOSE = 26
};

/* CM384_CLASS_CONVERT: operation (rd). funct2 = rounding (used where the result has fewer bits or is
   integral; else ignored). A repeat covers 64 elements on both sides: 8 blocks of a 4 B type, 4 of a 2 B
   type, 2 of a 1 B type; strides count 32 B blocks of the respective type, so contiguous means repeat strides
   8 / 4 / 2. Mask bits 0..63 are used. With a type of 8 B on one side it covers 32 elements. rs2 low half: 0,
   or a rounding beyond the four of funct2 (CM384_ROUND, CM384_ODD), which is then not used. Each repeat reads
   all of its source before it writes. */
enum cm384_convert {
  CM384_BF16_TO_F32 = 0,
  CM384_F32_TO_BF16 = 1, /* NaN stays NaN (quiet); overflow by the rounding: infinity or the largest value */
  CM384_F16_TO_F32 = 2,
  CM384_F32_TO_F16 = 3, /* as F32_TO_BF16 */
  CM384_F32_TO_S32 = 4, /* saturating; NaN gives 0 */
  CM384_S32_TO_F32 = 5,
  /* Overflow by the rounding: RINT gives infinity. rs2 high half: 0, or F32 bits of a factor: the integer, as
     F32, times the factor is what is rounded. */
  CM384_S32_TO_F16 = 6,
  CM384_F16_TO_S8 = 7, /* saturating; NaN gives 0 */
  CM384_S8_TO_F16 = 8,
  CM384_F32_TO_F32 = 9,  /* round to an integral value */
  CM384_F16_TO_S32 = 10, /* saturating; NaN gives 0 */
  CM384_S32_TO_S16 = 11, /* saturating */
  CM384_S16_TO_S32 = 12,
  CM384_F16_TO_U8 = 13, /* saturating; NaN gives 0 */
  CM384_U8_TO_F16 = 14,
  CM384_F32_TO_S16 = 15, /* saturating; NaN gives 0 */
  CM384_F16_TO_S16 = 16, /* saturating; NaN gives 0 */
  CM384_S16_TO_F16 = 17,
  CM384_BF16_TO_S32 = 18, /* saturating; NaN gives 0 */
  CM384_F32_TO_S64 = 19,  /* saturating; NaN gives 0 */
  CM384_S64_TO_F32 = 20,
  CM384_S32_TO_S64 = 21,
  CM384_S64_TO_S32 = 22, /* saturating */
  CM384_S16_TO_F32 = 23
};
enum cm384_rounding {
  CM384_RINT = 0 /* nearest, ties to even */,
  CM384_FLOOR = 1,
  CM384_CEIL = 2,
  CM384_TRUNC = 3,
  CM384_ROUND = 4, /* nearest, ties away from zero */
  CM384_ODD = 5    /* what is lost makes the last place odd (von Neumann) */
};

/* Custom CSRs, read only. */
#define CM384_CSR_BLOCK_INDEX 0xcc0 /* this block's number in the launch on this die, 0.. */
#define CM384_CSR_BLOCK_COUNT \
  0xcc1 /* blocks of the launch on this die: its cores, or its groups of AIC and AIVs */
#define CM384_CSR_ARGUMENTS 0xcc2 /* GM address of the launch's argument block */
#define CM384_CSR_SYS_COUNT 0xcc3 /* 50 MHz counter, as on the part */
#define CM384_CSR_CYCLE 0xcc4     /* core cycles since the start of the run (also the standard cycle CSR) */
#define CM384_CSR_CORE 0xcc5      /* physical core number on the die: AIVs 0..47, AICs from 48 */
#define CM384_CSR_DIE 0xcc6       /* die number in the supernode */
#define CM384_CSR_CORE_KIND 0xcc7 /* 0: AIV, 1: AIC */
#define CM384_CSR_SUB_BLOCK 0xcc8 /* an AIV's number in its group, in a launch that also has AICs; else 0 */
/* Of the last VMERGE that may stop: structures taken of each list, 16 bits each, from bit 0. Written as the
   UBuffer is: a flag from V to S comes before. */
#define CM384_CSR_MERGED 0xcc9

/* Host calls: funct7. */
enum cm384_host_call {
  CM384_HOST_EXIT = 0, /* rs1 = status; ends the block when its pipes have drained */
  CM384_HOST_WRITE =
      1, /* rs1 = address in private memory, rs2 = bytes: kernel printf; costs no simulated time */
  CM384_HOST_ABORT = 2 /* rs1 = address of a C string: the kernel gives up; the run ends with exit code 3 */
};

#endif
