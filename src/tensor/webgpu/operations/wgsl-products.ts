/** Matrix products: C [M, N] from tiles of A and B in the memory of a workgroup. */
import { ROUNDING, type Shader, shader } from '../shader.js';

/** The part of C that a workgroup computes, and the products that it takes at a time. */
export interface Tile {
  readonly rows: number;
  readonly columns: number;
  /** Even. */
  readonly inner: number;
  /** Rows and columns of one thread; columns a multiple of 4, rows too unless they are fewer. */
  readonly thread: readonly [rows: number, columns: number];
}

export interface ProductForm {
  readonly tile: Tile;
  /** A is stored [K, M]; else [M, K]. */
  readonly aByK: boolean;
  /** B is stored [K, N]; else [N, K]. */
  readonly bByK: boolean;
  /** B is in bfloat16. */
  readonly halves: boolean;
  /**
   * Factors are rounded to bfloat16, whose products are exact in float32, and of each pair of products the second is
   * added first, as the CPU kernels do.
   */
  readonly narrow: boolean;
}

/** What a product does with the numbers of C. */
export const INTO = { replace: 0, addSum: 1, beginWith: 2 } as const;

const cache = new Map<string, Shader>();

/**
 * The shader of a form. Each number of C is one chain of multiply-adds over k in order, whatever the tile, so that a
 * row has the same bits in a call of one row and of a thousand, as far as the device keeps to the chain.
 */
export function productShader(form: ProductForm): Shader {
  const { tile, aByK, bByK, halves, narrow } = form;
  const name = `product ${tile.rows}x${tile.columns}x${tile.inner}/${tile.thread.join('x')}${[
    aByK && ' a by k',
    bByK && ' b by k',
    halves && ' halves',
    narrow && ' narrow',
  ]
    .filter(Boolean)
    .join('')}`;
  let compiled = cache.get(name);
  if (compiled === undefined) {
    compiled = write(name, form);
    cache.set(name, compiled);
  }
  return compiled;
}

function write(name: string, { tile, aByK, bByK, halves, narrow }: ProductForm): Shader {
  const { rows, columns, inner } = tile;
  const [threadRows, threadColumns] = tile.thread;
  const [x, y] = [columns / threadColumns, rows / threadRows];
  const vectors = range(threadColumns / 4);
  const everySum = (each: (row: number, vector: number) => string) =>
    range(threadRows)
      .flatMap((row) => vectors.map((vector) => each(row, vector)))
      .join('\n  ');
  const at = (row: number, vector: number) =>
    `m0 + local.y * ${threadRows}u + ${row}u, n0 + local.x * ${threadColumns}u + ${4 * vector}u`;
  return shader({
    name,
    numbers: ['M', 'N', 'K', 'into', 'c_stride', 'a_stride', 'b_stride'],
    memories: ['C', 'A', halves ? 'B: bf16' : 'B'],
    threads: `${x}, ${y}`,
    declare: `${narrow ? ROUNDING : ''}
var<workgroup> a_tile: array<vec4f, ${(rows / 4) * inner}>;
var<workgroup> b_tile: array<vec4f, ${(columns / 4) * inner}>;
${fourNumbers('a_at', 'M', aByK ? 'A[k * p.a_stride + i]' : 'A[i * p.a_stride + k]', narrow)}
${fourNumbers('b_at', 'N', halves ? `B_at(${bByK ? B_BY_K : B_BY_N})` : `B[${bByK ? B_BY_K : B_BY_N}]`, narrow)}
fn before(m: u32, n: u32) -> vec4f {
  var v = vec4f(0.0);
  if (p.into != ${INTO.beginWith}u || m >= p.M) { return v; }
  for (var q = 0u; q < 4u; q++) { if (n + q < p.N) { v[q] = C[m * p.c_stride + n + q]; } }
  return v;
}
fn put(m: u32, n: u32, v: vec4f) {
  if (m >= p.M) { return; }
  for (var q = 0u; q < 4u; q++) {
    if (n + q < p.N) {
      let i = m * p.c_stride + n + q;
      if (p.into == ${INTO.addSum}u) { C[i] = C[i] + v[q]; } else { C[i] = v[q]; }
    }
  }
}`,
    body: `
  let m0 = group.y * ${rows}u; let n0 = group.x * ${columns}u;
  ${everySum((row, vector) => `var sum${row}_${vector} = before(${at(row, vector)});`)}
  for (var k0 = 0u; k0 < p.K; k0 += ${inner}u) {
    ${fillTile('a', rows / 4, inner, x * y, aByK, 'm0')}
    ${fillTile('b', columns / 4, inner, x * y, bByK, 'n0')}
    workgroupBarrier();
    for (var step = 0u; step < ${inner}u; step++) {
      let k = ${narrow ? 'step ^ 1u' : 'step'};
      ${vectors.map((v) => `let b${v} = b_tile[k * ${columns / 4}u + local.x * ${threadColumns / 4}u + ${v}u];`).join('\n      ')}
      ${factorsOfA(tile)}
      ${everySum((row, v) => `sum${row}_${v} = fma(vec4f(a${row}), b${v}, sum${row}_${v});`)}
    }
    workgroupBarrier();
  }
  ${everySum((row, vector) => `put(${at(row, vector)}, sum${row}_${vector});`)}`,
  });
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

const B_BY_K = 'k * p.b_stride + i';
const B_BY_N = 'i * p.b_stride + k';

/** `name(i, k)`: four neighbouring rows of A or columns of B at one step, 0 behind the ends. */
function fourNumbers(name: string, end: string, number: string, narrow: boolean): string {
  return `
fn ${name}_one(i: u32, k: u32) -> f32 {
  if (i >= p.${end} || k >= p.K) { return 0.0; } return ${narrow ? `rounded(${number})` : number};
}
fn ${name}(i: u32, k: u32) -> vec4f {
  return vec4f(${range(4)
    .map((q) => `${name}_one(i + ${q}u, k)`)
    .join(', ')});
}`;
}

/** Fills a tile, [inner, fours]; neighbouring threads read neighbouring numbers. */
function fillTile(of: string, fours: number, inner: number, threads: number, byK: boolean, first: string): string {
  const place = byK ? `let i = e % ${fours}u; let k = e / ${fours}u;` : `let k = e % ${inner}u; let i = e / ${inner}u;`;
  return `for (var e = t; e < ${fours * inner}u; e += ${threads}u) {
      ${place} ${of}_tile[k * ${fours}u + i] = ${of}_at(${first} + 4u * i, k0 + k);
    }`;
}

/** Declares `a0`, `a1` ...: the factors of a thread's rows. */
function factorsOfA({ rows, thread: [threadRows] }: Tile): string {
  if (threadRows < 4) {
    const one = (row: number) => `let m${row} = local.y * ${threadRows}u + ${row}u;
      let a${row} = a_tile[k * ${rows / 4}u + m${row} / 4u][m${row} % 4u];`;
    return range(threadRows).map(one).join('\n      ');
  }
  const four = (v: number) => `let f${v} = a_tile[k * ${rows / 4}u + local.y * ${threadRows / 4}u + ${v}u];
      ${range(4)
        .map((q) => `let a${4 * v + q} = f${v}[${q}];`)
        .join(' ')}`;
  return range(threadRows / 4)
    .map(four)
    .join('\n      ');
}
