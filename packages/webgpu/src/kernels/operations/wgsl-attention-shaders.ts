/**
 * Attention forward, and the shared parts of its shaders. A group has a block: the queries of some rows that see the
 * same keys, neighbours of one sequence or one slot, by the heads that share these keys. It walks over the keys in
 * tiles in its own memory. Tiles begin with the first key of a sequence or slot. Each line of the block sums over its
 * keys in order, whatever lines are beside it.
 */
import type { Heads } from '@drmas/engine/kernels';
import { type Shader, shader } from '../shader.js';

/** The vectors of a head: of four numbers if headDim is a multiple of four, else of two. */
export interface Lanes {
  readonly size: 2 | 4;
  readonly type: string;
  readonly count: number;
  /** Threads of a group, and the number of adjacent threads for the vectors of one head: `count` or a little more. */
  readonly threads: number;
  readonly columns: number;
  readonly at: (name: string, place: string) => string;
  readonly put: (name: string, place: string, vector: string) => string;
  readonly sum: (vector: string) => string;
}

const sizeOf = (headDim: number) => (headDim % 4 === 0 ? 4 : 2);
const columnsOf = (headDim: number) => 2 ** Math.ceil(Math.log2(headDim / sizeOf(headDim)));

function lanesOf(headDim: number): Lanes {
  const size = sizeOf(headDim);
  const letters = ['x', 'y', 'z', 'w'].slice(0, size);
  const type = `vec${size}f`;
  const columns = columnsOf(headDim);
  const place = (base: string, i: number) => (i === 0 ? base : `${base} + ${i}u`);
  return {
    size,
    type,
    count: headDim / size,
    threads: Math.max(64, columns),
    columns,
    at: (name, base) => `${type}(${letters.map((_, i) => `${name}[${place(base, i)}]`).join(', ')})`,
    put: (name, base, vector) => letters.map((l, i) => `${name}[${place(base, i)}] = ${vector}.${l};`).join(' '),
    sum: (vector) => `(${letters.map((letter) => `${vector}.${letter}`).join(' + ')})`,
  };
}

/** One shader for each head dimension, since WGSL has fixed lengths of arrays. */
export const byDimension = (write: (headDim: number, lanes: Lanes) => Shader) => {
  const written = new Map<number, Shader>();
  return (headDim: number): Shader => {
    const before = written.get(headDim) ?? write(headDim, lanesOf(headDim));
    written.set(headDim, before);
    return before;
  };
};

/** The most lines of a block, and of a tile: both fit the 16 KB of a group. */
export interface BlockSize {
  readonly lines: number;
  readonly tile: number;
}
const forwardSize = (columns: number): BlockSize => ({
  lines: Math.min(32, 512 / columns),
  tile: Math.min(16, 256 / columns),
});
/** Backward a block has two vectors of each line, and so has a tile of the others. */
export const backwardSize = (columns: number): BlockSize => ({
  lines: Math.min(16, 256 / columns),
  tile: Math.min(8, 128 / columns),
});
export const forwardLines = (headDim: number): number => forwardSize(columnsOf(headDim)).lines;
export const backwardLines = (headDim: number): number => backwardSize(columnsOf(headDim)).lines;

/** How a block of queries is made of rows and heads, and how many blocks share the heads of one key. */
export function blockOf(lines: number, { heads, kvHeads }: Heads) {
  const headsOfBlock = Math.min(heads / kvHeads, lines);
  return {
    rowsOfBlock: Math.floor(lines / headsOfBlock),
    headsOfBlock,
    chunks: Math.ceil(heads / kvHeads / headsOfBlock),
  };
}

/** `run_in_batch`: of rows the first ones of one sequence, their number, and the first and the end of the sequence. */
export const RUN_IN_BATCH = `
fn run_in_batch(row: u32, end: u32) -> vec4u {
  let first = max(row, u32(starts[0])); let last = min(end, u32(starts[p.sequences]));
  if (first >= last) { return vec4u(end, 0u, 0u, 0u); }
  var low = 0u; var high = p.sequences;
  while (high - low > 1u) {
    let middle = (low + high) / 2u; if (u32(starts[middle]) <= first) { low = middle; } else { high = middle; }
  }
  let behind = u32(starts[low + 1u]); return vec4u(first, min(last, behind) - first, u32(starts[low]), behind);
}`;

/** The places of the key and value of a row in the cache, and how many places of its slot the row sees. */
export const CACHED_SPAN = `
fn span_in_cache(row: u32) -> vec2u { return vec2u(u32(slots[row]) * p.capacity, u32(positions[row]) + 1u); }`;

/** `run_in_cache`: the number of leading rows that share one slot, the slot's first key, and the keys that they see. */
const RUN_IN_CACHE = `${CACHED_SPAN}
fn run_in_cache(first: u32, end: u32) -> vec4u {
  var count = 0u; var seen = 0u;
  while (first + count < end && slots[first + count] == slots[first]) {
    seen = max(seen, span_in_cache(first + count).y); count++;
  }
  return vec4u(first, count, span_in_cache(first).x, seen);
}`;

export const BLOCK_NUMBERS = ['rows', 'heads', 'kv_heads', 'sequences', 'rows_of_block', 'heads_of_block', 'chunks'];
/** Runs the body for each run of a group's rows; most groups have one. `find` gives the run that begins with `row`. */
export const eachRun = (find: string, body: string) => `
  let end = min((group.x + 1u) * p.rows_of_block, p.rows);
  for (var row = group.x * p.rows_of_block; row < end;) {
    if (t == 0u) { run = ${find}; }
    let rows = workgroupUniformLoad(&run); row = rows.x + rows.y; if (rows.y == 0u) { continue; }
    ${body}
  }`;
/** Whether a query's window reaches back to a key. A window of 0 reaches back to all. */
export const inWindow = (key: string, query: string) => `(p.window == 0u || ${query} < ${key} + p.window)`;
export const RUN = 'var<workgroup> run: vec4u;';
/** The lines of a run of rows: line `l` is the query of a row and a head. */
export const linesOfRun = (headDim: number) => `
  let width = p.kv_heads * ${headDim}u; let stride = p.heads * ${headDim}u + 2u * width;
  let kv = group.y / p.chunks; let head0 = kv * (p.heads / p.kv_heads) + group.y % p.chunks * p.heads_of_block;
  let heads = min(p.heads_of_block, (kv + 1u) * (p.heads / p.kv_heads) - head0); let lines = rows.y * heads;`;
const ROW = '(rows.x + l / heads)';
const HEAD = '(head0 + l % heads)';
export const placeInQkv = (headDim: number) => `${ROW} * stride + ${HEAD} * ${headDim}u`;
export const placeInHeads = (headDim: number) => `(${ROW} * p.heads + ${HEAD}) * ${headDim}u`;
export const PLACE_OF_LINE = `${ROW} * p.heads + ${HEAD}`;

/** Runs the body for each vector of `n` lines or keys: of number `k` vector `i`. */
export const eachVector = ({ count, threads }: Lanes, n: string, body: string) =>
  `for (var e = t; e < ${n} * ${count}u; e += ${threads}u) { let k = e / ${count}u; let i = e % ${count}u; ${body} }`;

interface DotProduct {
  readonly name: string;
  /** A workgroup's array [lines, count]. */
  readonly line: string;
  /** One of rows that are one vector longer, so that neighbours lie in other banks: [tile, count + 1]. */
  readonly other: string;
}
/**
 * Dot products of all lines with all of a tile; `write` knows `l`, `k` and each by its name. A compiler would make a
 * plain product of `fma(a, b, 0)`, and contract it with a later sum in one place and not in another; it does not know
 * that `p.zero` is 0.
 */
export function eachPair(
  { type, count, threads, sum }: Lanes,
  { lines, tile }: BlockSize,
  products: readonly DotProduct[],
  write: string,
): string {
  const step = threads / tile;
  const atOnce = range(Math.max(1, Math.min(4, lines / step)));
  const all = (text: (product: DotProduct, i: number) => string) =>
    atOnce.flatMap((i) => products.map((product) => text(product, i))).join(' ');
  return `for (var l0 = t / ${tile}u; l0 < lines; l0 += ${atOnce.length * step}u) {
      let k = t % ${tile}u;
      ${all(({ name }, i) => `var ${name}_${i} = ${type}(p.zero);`)}
      for (var d = 0u; d < ${count}u; d++) {
        ${products.map(({ name, other }) => `let of_${name} = ${other}[k * ${count + 1}u + d];`).join(' ')}
        ${all(
          ({ name, line }, i) =>
            `${name}_${i} = fma(${line}[(l0 + ${i * step}u) * ${count}u + d], of_${name}, ${name}_${i});`,
        )}
      }
      ${atOnce
        .map((i) => {
          const values = products.map(({ name }) => `let ${name} = ${sum(`${name}_${i}`)};`).join(' ');
          return `{ let l = l0 + ${i * step}u; if (l < lines) { ${values} ${write} } }`;
        })
        .join('\n      ')}
    }`;
}

/** A sum over the tile for each line: of vectors, each times a number of its pair with the line. */
interface SumOverTile {
  readonly name: string;
  /** A workgroup's array [lines, tile]. */
  readonly factors: string;
  /** One of rows that are one vector longer: [tile, count + 1]. */
  readonly vectors: string;
}

/** Sums of a thread: of some lines vector `d` each. */
export function sumsOf(
  { type, count, threads, columns }: Lanes,
  { lines, tile }: BlockSize,
  of: readonly SumOverTile[],
) {
  const sums = range(Math.max(1, (lines * columns) / threads));
  const line = (i: number) => `t / ${columns}u + ${(i * threads) / columns}u`;
  const addTo = (i: number, { name, factors }: SumOverTile) =>
    `${name}_${i} = fma(${type}(${factors}[(${line(i)}) * ${tile}u + k]), of_${name}, ${name}_${i});`;
  /** Four lines at a time share their reads; if the block has none of them there is nothing to do. */
  const four = (first: number) => `if (${(first * threads) / columns}u < lines) {
      for (var k = 0u; k < here; k++) {
        ${of.map(({ name, vectors }) => `let of_${name} = ${vectors}[k * ${count + 1}u + d];`).join(' ')}
        ${sums
          .slice(first, first + 4)
          .flatMap((i) => of.map((each) => addTo(i, each)))
          .join(' ')}
      }
    }`;
  return {
    declare: `let d = min(t % ${columns}u, ${count - 1}u);
  ${sums.flatMap((i) => of.map(({ name }) => `var ${name}_${i} = ${type}(0.0);`)).join(' ')}`,
    /** Adds a tile, which has `here` lines. */
    add: sums
      .filter((i) => i % 4 === 0)
      .map(four)
      .join('\n    '),
    /** Runs `body` for the sums of each line `l`. */
    each: (body: (i: number) => string) =>
      sums.map((i) => `{ let l = ${line(i)}; if (l < lines && t % ${columns}u == d) { ${body(i)} } }`).join('\n    '),
  };
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

/**
 * Softmax over a row's keys in one pass (Milakov and Gimelshein 2018, arXiv 1805.02867), tile by tile. The keys are in
 * `qkv`, or in a cache [places, kvHeads headDim].
 */
export const attend = byDimension((headDim, lanes) => {
  const { type, count, size, at, put } = lanes;
  const block = forwardSize(lanes.columns);
  const { lines, tile } = block;
  const mix = sumsOf(lanes, block, [{ name: 'mix', factors: 'scores', vectors: 'key_tile' }]);
  const fill = (memory: string, offset: string) =>
    eachVector(
      lanes,
      'here',
      `let place = rows.z + k0 + k; let column = kv * ${headDim}u + ${size}u * i;
      if (p.sequences == 0u) { key_tile[k * ${count + 1}u + i] = ${at(memory, 'place * width + column')}; }
      else { key_tile[k * ${count + 1}u + i] = ${at('qkv', `place * stride + ${offset} + column`)}; }`,
    );
  return shader({
    name: `attention ${headDim}`,
    numbers: [...BLOCK_NUMBERS, 'capacity', 'window', 'scale!', 'zero!'],
    memories: ['out', 'logSumExp', 'qkv', 'keys', 'values', 'starts: i32', 'slots: i32', 'positions: i32'],
    threads: `${lanes.threads}`,
    declare: `${RUN} var<workgroup> query_tile: array<${type}, ${lines * count}>;
var<workgroup> key_tile: array<${type}, ${tile * (count + 1)}>;
var<workgroup> scores: array<f32, ${lines * tile}>; var<workgroup> of_line: array<f32, ${lines}>;
var<workgroup> seen: array<u32, ${lines}>;
${RUN_IN_BATCH}${RUN_IN_CACHE}
fn run_of(row: u32, end: u32) -> vec4u {
  if (p.sequences == 0u) { return run_in_cache(row, end); }
  let rows = run_in_batch(row, end); return vec4u(rows.xyz, rows.x + rows.y - rows.z);
}`,
    body: eachRun(
      'run_of(row, end)',
      `${linesOfRun(headDim)}
  ${eachVector(lanes, 'lines', `let l = k; query_tile[e] = ${at('qkv', `${placeInQkv(headDim)} + ${size}u * i`)};`)}
  var top = -3.0e38; var sum = 0.0;
  if (t < lines) {
    let row = rows.x + t / heads;
    if (p.sequences == 0u) { seen[t] = span_in_cache(row).y; } else { seen[t] = row - rows.z + 1u; }
  }
  ${mix.declare}
  for (var k0 = 0u; k0 < rows.w; k0 += ${tile}u) {
    let here = min(${tile}u, rows.w - k0);
    workgroupBarrier();
    ${fill('keys', `p.heads * ${headDim}u`)}
    workgroupBarrier();
    ${eachPair(
      lanes,
      block,
      [{ name: 'score', line: 'query_tile', other: 'key_tile' }],
      `scores[l * ${tile}u + k] = select(-3.0e38, score * p.scale, k0 + k < seen[l] && ${inWindow('k0 + k', 'seen[l] - 1u')});`,
    )}
    workgroupBarrier();
    ${fill('values', `p.heads * ${headDim}u + width`)}
    if (t < lines) {
      let before = top;
      for (var k = 0u; k < here; k++) { top = max(top, scores[t * ${tile}u + k]); }
      let shrink = exp(before - top); of_line[t] = shrink; var more = 0.0;
      for (var k = 0u; k < here; k++) {
        let weight = exp(scores[t * ${tile}u + k] - top); scores[t * ${tile}u + k] = weight; more += weight;
      }
      sum = fma(sum, shrink, more);
    }
    workgroupBarrier();
    ${mix.each((i) => `mix_${i} *= of_line[l];`)}
    ${mix.add}
  }
  workgroupBarrier();
  if (t < lines) { let l = t; of_line[t] = sum; logSumExp[${PLACE_OF_LINE}] = fma(log2(sum), ${Math.LN2}, top); }
  workgroupBarrier();
  ${mix.each(
    (i) => `let v = mix_${i} / of_line[l]; let to = ${placeInHeads(headDim)} + ${size}u * d; ${put('out', 'to', 'v')}`,
  )}`,
    ),
  });
});
