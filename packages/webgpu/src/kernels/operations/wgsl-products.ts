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
  /** Steps whose factors a thread reads before it adds the first of their products; even. */
  readonly ahead: number;
}

export interface ProductForm {
  readonly tile: Tile;
  /** A is stored [K, M]; else [M, K]. */
  readonly aByK: boolean;
  /** B is stored [K, N]; else [N, K]. */
  readonly bByK: boolean;
  /** B is in bfloat16. */
  readonly bInBfloat16: boolean;
  /**
   * Factors are rounded to bfloat16, whose products are exact in float32, and of each pair of products the second is
   * added first, as the CPU kernels do.
   */
  readonly inBfloat16: boolean;
  /** The bias or residual, and the second product, of `linearOnto`. */
  readonly onto?: Onto;
}

export interface Onto {
  /** C begins with a matrix whose rows are some numbers apart, or with one row for all, then the product is added. */
  readonly before: boolean;
  /** Then a second product is added, D [M, L] by E [N, L], and whether E is in bfloat16. */
  readonly share: 'float32' | 'bfloat16' | undefined;
}

export const INTO = { replace: 0, addSum: 1, beginWith: 2, addScaled: 3 } as const;

/** The shaders that were written, by tile and by the other fields of a form: names take long to put together. */
const written = new Map<Tile, Shader[]>();
const SHARES = [undefined, 'float32', 'bfloat16'] as const satisfies Onto['share'][];

/**
 * The shader of a form. Each number of C is one chain of multiply-adds over k in order, whatever the tile, so that a
 * row has the same bits in a call of one row and of a thousand, as far as the device keeps to the chain.
 */
export function productShader(form: ProductForm): Shader {
  const { tile, aByK, bByK, bInBfloat16, inBfloat16, onto } = form;
  let shaders = written.get(tile);
  if (shaders === undefined) {
    shaders = [];
    written.set(tile, shaders);
  }
  const flags = [aByK, bByK, bInBfloat16, inBfloat16, onto?.before].reduce(
    (all, flag) => 2 * all + Number(flag === true),
    0,
  );
  const at = flags * SHARES.length + SHARES.indexOf(onto?.share);
  shaders[at] ??= write(nameOf(form), form);
  return shaders[at];
}

const nameOf = ({
  tile: { rows, columns, inner, thread, ahead },
  aByK,
  bByK,
  bInBfloat16,
  inBfloat16,
  onto,
}: ProductForm): string =>
  `product ${rows}x${columns}x${inner}/${thread.join('x')}/${ahead}${[
    aByK && ' a by k',
    bByK && ' b by k',
    bInBfloat16 && ' b in bfloat16',
    inBfloat16 && ' in bfloat16',
    onto?.before && ' onto',
    onto?.share && ` and ${onto.share}`,
  ]
    .filter(Boolean)
    .join('')}`;

function write(name: string, { tile, aByK, bByK, bInBfloat16, inBfloat16, onto }: ProductForm): Shader {
  const { rows, columns, inner, ahead } = tile;
  const [threadRows, threadColumns] = tile.thread;
  const [x, y] = [columns / threadColumns, rows / threadRows];
  const vectors = range(threadColumns / 4);
  const everySum = (each: (row: number, vector: number) => string) =>
    range(threadRows)
      .flatMap((row) => vectors.map((vector) => each(row, vector)))
      .join('\n  ');
  const at = (row: number, vector: number) =>
    `m0 + local.y * ${threadRows}u + ${row}u, n0 + local.x * ${threadColumns}u + ${4 * vector}u`;
  /** Adds the products over all k to the sums. During the products of a tile, the numbers of the next are read. */
  const overSteps = ([a, b]: readonly [string, string], end: string, byK: readonly [boolean, boolean]) => {
    const ofA = fillOf('a_tile', `${a}(m0 + 4u * i, k0 + k)`, [rows / 4, inner], x * y, byK[0]);
    const ofB = fillOf('b_tile', `${b}(n0 + 4u * i, k0 + k)`, [columns / 4, inner], x * y, byK[1]);
    return `{
  ${ofA.declare} ${ofB.declare}
  for (var k0 = 0u; k0 < ${end} + ${inner}u; k0 += ${inner}u) {
    if (k0 < ${end}) {
      ${ofA.read}
      ${ofB.read}
    }
    if (k0 > 0u) {
      for (var step = 0u; step < ${inner}u; step += ${ahead}u) {
        ${range(ahead).map(factors).join('\n        ')}
        ${range(ahead).map(addProducts).join('\n        ')}
      }
    }
    workgroupBarrier();
    ${ofA.put}
    ${ofB.put}
    workgroupBarrier();
  }
  }`;
  };
  /** Declares the factors of the step `q` of those that are taken together. */
  const factors = (q: number) => `let k${q} = step + ${inBfloat16 ? q ^ 1 : q}u;
      ${vectors.map((v) => `let b${v}_${q} = b_tile[k${q} * ${columns / 4}u + local.x * ${threadColumns / 4}u + ${v}u];`).join(' ')}
      ${factorsOfA(tile, q)}`;
  const addProducts = (q: number) =>
    everySum((row, v) => `sum${row}_${v} = fma(vec4f(a${row}_${q}), b${v}_${q}, sum${row}_${v});`);
  const { before, share } = onto ?? {};
  const shared = share !== undefined;
  // A number that is added to is read in one place, and written in one: drivers compile this once a row of a thread.
  return shader({
    name,
    numbers: [
      ...['M', 'N', 'K', 'into', 'c_stride', 'a_stride', 'b_stride', 'scale!'],
      ...(before ? ['before_stride'] : []),
      ...(shared ? ['L'] : []),
    ],
    memories: [
      ...['C', 'A', bInBfloat16 ? 'B: bf16' : 'B'],
      ...(before ? ['before'] : []),
      ...(shared ? ['D', share === 'bfloat16' ? 'E: bf16' : 'E'] : []),
    ],
    threads: `${x}, ${y}`,
    declare: `${inBfloat16 ? ROUNDING : ''}
var<workgroup> a_tile: array<vec4f, ${(rows / 4) * inner}>;
var<workgroup> b_tile: array<vec4f, ${(columns / 4) * inner}>;
${fourNumbers('a_at', 'M', 'K', aByK ? 'A[k * p.a_stride + i]' : 'A[i * p.a_stride + k]', inBfloat16)}
${fourNumbers('b_at', 'N', 'K', indexed('B', bInBfloat16, bByK ? 'k * p.b_stride + i' : 'i * p.b_stride + k'), inBfloat16)}
${shared ? fourNumbers('d_at', 'M', 'L', 'D[i * p.L + k]', inBfloat16) : ''}
${shared ? fourNumbers('e_at', 'N', 'L', indexed('E', share === 'bfloat16', 'i * p.L + k'), inBfloat16) : ''}
fn begin(m: u32, n: u32) -> vec4f {
  let i = m * p.c_stride + n; let here = vec4<bool>(n < p.N, n + 1u < p.N, n + 2u < p.N, n + 3u < p.N);
  return select(vec4f(0.0), vec4f(C[i], C[i + 1u], C[i + 2u], C[i + 3u]), here & vec4<bool>(m < p.M));
}
fn put(m: u32, n: u32, v: vec4f, into: u32) {
  for (var q = 0u; q < 4u; q++) {
    if (m < p.M && n + q < p.N) {
      let i = m * p.c_stride + n + q; var w = v[q];
      if (into == ${INTO.addSum}u || into == ${INTO.addScaled}u) {
        let c = C[i]; w = select(c + w, fma(p.scale, w, c), into == ${INTO.addScaled}u);
      } ${before ? 'else { w = before[m * p.before_stride + n + q] + w; }' : ''}
      C[i] = w;
    }
  }
}`,
    body: `
  let m0 = group.y * ${rows}u; let n0 = group.x * ${columns}u;
  ${everySum((row, vector) => `var sum${row}_${vector} = vec4f(0.0);`)}
  if (p.into == ${INTO.beginWith}u) {
  ${everySum((row, vector) => `sum${row}_${vector} = begin(${at(row, vector)});`)}
  }
  ${overSteps(['a_at', 'b_at'], 'p.K', [aByK, bByK])}
  ${everySum((row, vector) => `put(${at(row, vector)}, sum${row}_${vector}, p.into);`)}
  ${
    shared
      ? `${everySum((row, vector) => `sum${row}_${vector} = vec4f(0.0);`)}
  ${overSteps(['d_at', 'e_at'], 'p.L', [false, false])}
  ${everySum((row, vector) => `put(${at(row, vector)}, sum${row}_${vector}, ${INTO.addSum}u);`)}`
      : ''
  }`,
  });
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

const indexed = (memory: string, inBfloat16: boolean, at: string) =>
  inBfloat16 ? `${memory}_at(${at})` : `${memory}[${at}]`;

/**
 * `name(i, k)`: four neighbouring rows of A or columns of B at one step, 0 behind the ends. They are chosen, not
 * branched for: each branch is one more block that a driver compiles, in every place that the function is called.
 */
function fourNumbers(name: string, end: string, steps: string, number: string, inBfloat16: boolean): string {
  return `
fn ${name}_one(i: u32, k: u32) -> f32 {
  return select(0.0, ${inBfloat16 ? `rounded(${number})` : number}, i < p.${end} && k < p.${steps});
}
fn ${name}(i: u32, k: u32) -> vec4f {
  return vec4f(${range(4)
    .map((q) => `${name}_one(i + ${q}u, k)`)
    .join(', ')});
}`;
}

/**
 * How the threads fill a tile, [inner, fours]: each reads some vectors and puts them there later. Neighbouring threads
 * read neighbouring numbers. A loop has a constant end, so that a compiler makes variables of the array, and waits for
 * all reads at once.
 */
function fillOf(
  tile: string,
  vector: string,
  [fours, inner]: readonly [number, number],
  threads: number,
  byK: boolean,
): Readonly<Record<'declare' | 'read' | 'put', string>> {
  const [all, next] = [fours * inner, `next_${tile}`];
  const each = Math.ceil(all / threads);
  const place = byK ? `let i = e % ${fours}u; let k = e / ${fours}u;` : `let k = e % ${inner}u; let i = e / ${inner}u;`;
  const loop = (body: string) =>
    `for (var q = 0u; q < ${each}u; q++) { let e = t + q * ${threads}u; ${place} ${body} }`;
  const put = `${tile}[k * ${fours}u + i] = ${next}[q];`;
  return {
    declare: `var ${next}: array<vec4f, ${each}>;`,
    read: loop(`${next}[q] = ${vector};`),
    put: loop(all % threads === 0 ? put : `if (e < ${all}u) { ${put} }`),
  };
}

/** Declares `a0_q`, `a1_q` ...: the factors of a thread's rows at the step `q`. */
function factorsOfA({ rows, thread: [threadRows] }: Tile, q: number): string {
  if (threadRows < 4) {
    const one = (row: number) => `let m${row}_${q} = local.y * ${threadRows}u + ${row}u;
      let a${row}_${q} = a_tile[k${q} * ${rows / 4}u + m${row}_${q} / 4u][m${row}_${q} % 4u];`;
    return range(threadRows).map(one).join('\n      ');
  }
  const four = (v: number) => `let f${v}_${q} = a_tile[k${q} * ${rows / 4}u + local.y * ${threadRows / 4}u + ${v}u];
      ${range(4)
        .map((one) => `let a${4 * v + one}_${q} = f${v}_${q}[${one}];`)
        .join(' ')}`;
  return range(threadRows / 4)
    .map(four)
    .join('\n      ');
}
