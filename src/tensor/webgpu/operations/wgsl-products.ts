/** Matrix products: C [M, N] from tiles of A and B in the memory of a workgroup. */
import { ROUNDING, type Shader, shader } from '../shader.js';

/** The part of C that a workgroup computes, and the products that it takes at a time. */
export interface Tile {
  readonly rows: number;
  readonly columns: number;
  /** Even. */
  readonly inner: number;
  /** Rows and columns of one thread; columns a multiple of 4. */
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
  const round = (value: string) => (narrow ? `rounded(${value})` : value);
  // Neighbouring threads read neighbouring numbers.
  const [aTile, a] = aByK
    ? [`let m = e % ${rows}u; let k = e / ${rows}u;`, 'A[(k0 + k) * p.a_stride + m0 + m]']
    : [`let k = e % ${inner}u; let m = e / ${inner}u;`, 'A[(m0 + m) * p.a_stride + k0 + k]'];
  const [bTile, bIndex] = bByK
    ? [`let n = e % ${columns}u; let k = e / ${columns}u;`, '(k0 + k) * p.b_stride + n0 + n']
    : [`let k = e % ${inner}u; let n = e / ${inner}u;`, '(n0 + n) * p.b_stride + k0 + k'];
  const b = halves ? `B_at(${bIndex})` : `B[${bIndex}]`;
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
var<workgroup> a_tile: array<f32, ${rows * inner}>;
var<workgroup> b_tile: array<f32, ${inner * columns}>;
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
    for (var e = t; e < ${rows * inner}u; e += ${x * y}u) {
      ${aTile} var v = 0.0; if (m0 + m < p.M && k0 + k < p.K) { v = ${round(a)}; } a_tile[k * ${rows}u + m] = v;
    }
    for (var e = t; e < ${inner * columns}u; e += ${x * y}u) {
      ${bTile} var v = 0.0; if (n0 + n < p.N && k0 + k < p.K) { v = ${round(b)}; } b_tile[k * ${columns}u + n] = v;
    }
    workgroupBarrier();
    for (var step = 0u; step < ${inner}u; step++) {
      let k = ${narrow ? 'step ^ 1u' : 'step'};
      ${vectors.map((v) => `let b${v} = ${vector4('b_tile', `k * ${columns}u + local.x * ${threadColumns}u + ${4 * v}u`)};`).join('\n      ')}
      ${range(threadRows)
        .map(
          (row) =>
            `{ let a = vec4f(a_tile[k * ${rows}u + local.y * ${threadRows}u + ${row}u]);
        ${vectors.map((v) => `sum${row}_${v} = fma(a, b${v}, sum${row}_${v});`).join(' ')} }`,
        )
        .join('\n      ')}
    }
    workgroupBarrier();
  }
  ${everySum((row, vector) => `put(${at(row, vector)}, sum${row}_${vector});`)}`,
  });
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

const vector4 = (name: string, at: string) =>
  `vec4f(${name}[${at}], ${name}[${at} + 1u], ${name}[${at} + 2u], ${name}[${at} + 3u])`;
