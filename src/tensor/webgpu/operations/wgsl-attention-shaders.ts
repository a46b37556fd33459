import { type Shader, shader } from '../shader.js';

/** Threads of a group, each with a query or a key. */
export const THREADS = 32;

/** Vectors of a head: of four numbers where that comes out even, else of two. */
interface Lanes {
  readonly size: 2 | 4;
  readonly type: string;
  readonly count: number;
  /** The vector at a place of a memory. */
  readonly at: (name: string, place: string) => string;
  /** Statements that store a vector at a place. */
  readonly put: (name: string, place: string, vector: string) => string;
  readonly sum: (vector: string) => string;
  readonly each: (body: string) => string;
  readonly declare: (...names: string[]) => string;
}

function lanesOf(headDim: number): Lanes {
  const size = headDim % 4 === 0 ? 4 : 2;
  const letters = ['x', 'y', 'z', 'w'].slice(0, size);
  const type = `vec${size}f`;
  const count = headDim / size;
  const place = (base: string, i: number) => (i === 0 ? base : `${base} + ${i}u`);
  return {
    size,
    type,
    count,
    at: (name, base) => `${type}(${letters.map((_, i) => `${name}[${place(base, i)}]`).join(', ')})`,
    put: (name, base, vector) => letters.map((l, i) => `${name}[${place(base, i)}] = ${vector}.${l};`).join(' '),
    sum: (vector) => `(${letters.map((letter) => `${vector}.${letter}`).join(' + ')})`,
    each: (body) => `for (var d = 0u; d < ${count}u; d++) { ${body} }`,
    declare: (...names) => names.map((name) => `var ${name}: array<${type}, ${count}>;`).join(' '),
  };
}

/** One shader for each head dimension, since private arrays have their length in the code. */
const byDimension = (write: (headDim: number, lanes: Lanes) => Shader) => {
  const written = new Map<number, Shader>();
  return (headDim: number): Shader => {
    const before = written.get(headDim) ?? write(headDim, lanesOf(headDim));
    written.set(headDim, before);
    return before;
  };
};

const HEAD = (headDim: number) =>
  `let width = p.kv_heads * ${headDim}u; let stride = p.heads * ${headDim}u + 2u * width;`;
const OF_QUERY = 'let head = group.y; let kv = head * p.kv_heads / p.heads;';

/** The rows of a row's sequence in a batch: the first, and the one behind the last. Both the same: it is in none. */
const SEQUENCE = `
fn sequence_of(row: u32) -> vec2u {
  let first = u32(starts[0]); let end = u32(starts[p.sequences]);
  if (row < first || row >= end) { return vec2u(select(end, first, row < first)); }
  var low = 0u; var high = p.sequences;
  while (high - low > 1u) {
    let middle = (low + high) / 2u; if (u32(starts[middle]) <= row) { low = middle; } else { high = middle; }
  }
  return vec2u(u32(starts[low]), u32(starts[low + 1u]));
}
fn span_in_batch(row: u32) -> vec2u {
  let rows = sequence_of(row); return vec2u(rows.x, select(row - rows.x + 1u, 0u, rows.x == rows.y));
}`;

/** The places of the key and value of a row in the cache, and how many places of its slot the row sees. */
export const CACHED_SPAN = `
fn span_in_cache(row: u32) -> vec2u { return vec2u(u32(slots[row]) * p.capacity, u32(positions[row]) + 1u); }`;

/**
 * Softmax over a row's keys in one pass (Milakov and Gimelshein 2018, arXiv 1805.02867). Of a batch, `rows_of_group`
 * rows share tiles of keys, which are in `qkv`; in a cache every row has keys of its own. A row's span is the first of
 * its keys and their number.
 */
export const attend = byDimension((headDim, lanes) => {
  const { size, type, count } = lanes;
  const keys = headDim > 64 ? 8 : 16; // of a tile: 8 KB of keys and 8 KB of values would be all that a group may have
  return shader({
    name: `attention ${headDim}`,
    numbers: ['rows', 'heads', 'kv_heads', 'rows_of_group', 'sequences', 'capacity', 'scale!'],
    memories: ['out', 'logSumExp', 'qkv', 'keys', 'values', 'starts: i32', 'slots: i32', 'positions: i32'],
    threads: `${THREADS}`,
    declare: `var<workgroup> key_tile: array<${type}, ${keys * count}>;
var<workgroup> value_tile: array<${type}, ${keys * count}>; var<workgroup> range_of_group: vec2u;
${SEQUENCE}${CACHED_SPAN}
fn span_of(row: u32) -> vec2u { if (p.sequences == 0u) { return span_in_cache(row); } return span_in_batch(row); }`,
    body: `${OF_QUERY} ${HEAD(headDim)}
  let first = group.x * p.rows_of_group; let live = t < p.rows_of_group && first + t < p.rows;
  let row = min(first + min(t, p.rows_of_group - 1u), p.rows - 1u); let span = span_of(row);
  if (t == 0u) {
    let upper = span_of(min(first + p.rows_of_group, p.rows) - 1u);
    range_of_group = vec2u(span.x, upper.x + upper.y);
  }
  let range = workgroupUniformLoad(&range_of_group);
  ${lanes.declare('query', 'mix')}
  ${lanes.each(
    `query[d] = ${lanes.at('qkv', `row * stride + head * ${headDim}u + ${size}u * d`)}; mix[d] = ${type}(0.0);`,
  )}
  var top = -3.0e38; var sum = 0.0;
  for (var k0 = range.x; k0 < range.y; k0 += ${keys}u) {
    for (var e = t; e < ${keys * count}u; e += ${THREADS}u) {
      let k = k0 + e / ${count}u; let i = kv * ${headDim}u + e % ${count}u * ${size}u;
      if (k >= range.y) { break; }
      if (p.sequences == 0u) {
        let at = k * width + i;
        key_tile[e] = ${lanes.at('keys', 'at')}; value_tile[e] = ${lanes.at('values', 'at')};
      } else {
        let at = k * stride + p.heads * ${headDim}u + i;
        key_tile[e] = ${lanes.at('qkv', 'at')}; value_tile[e] = ${lanes.at('qkv', 'at + width')};
      }
    }
    workgroupBarrier();
    if (live) {
      for (var k = max(k0, span.x); k < min(k0 + ${keys}u, span.x + span.y); k++) {
        let j = (k - k0) * ${count}u; var products = ${type}(0.0);
        ${lanes.each('products = fma(query[d], key_tile[j + d], products);')}
        let score = ${lanes.sum('products')} * p.scale;
        if (score > top) {
          let shrink = exp(top - score); top = score; sum *= shrink; ${lanes.each('mix[d] *= shrink;')}
        }
        let weight = exp(score - top); sum += weight;
        ${lanes.each(`mix[d] = fma(${type}(weight), value_tile[j + d], mix[d]);`)}
      }
    }
    workgroupBarrier();
  }
  if (live && span.y > 0u) {
    ${lanes.each(
      `let v = mix[d] / sum; let to = (row * p.heads + head) * ${headDim}u + ${size}u * d; ${lanes.put('out', 'to', 'v')}`,
    )}
    logSumExp[row * p.heads + head] = top + log(sum);
  }`,
  });
});

const BACKWARD = {
  numbers: ['rows', 'heads', 'kv_heads', 'sequences', 'scale!'],
  threads: `${THREADS}`,
  declare: SEQUENCE,
};
const BACKWARD_MEMORIES = ['dQkv', 'dOut', 'logSumExp', 'means', 'qkv', 'starts: i32'];

/**
 * A thread has a query: its gradient over its keys in order. It leaves behind the change that all keys of the query
 * share: the dot product of its output and the gradient on that.
 */
export const backwardOfQueries = byDimension((headDim, lanes) => {
  const { size, type } = lanes;
  return shader({
    ...BACKWARD,
    name: `attention backward, queries ${headDim}`,
    memories: [...BACKWARD_MEMORIES, 'out'],
    body: `${OF_QUERY} ${HEAD(headDim)}
  let row = group.x * ${THREADS}u + t; if (row >= p.rows) { return; }
  let span = span_in_batch(row); if (span.y == 0u) { return; }
  let at = row * stride + head * ${headDim}u; let to = (row * p.heads + head) * ${headDim}u;
  ${lanes.declare('query', 'change', 'd_query')} var shared_change = ${type}(0.0);
  ${lanes.each(
    `query[d] = ${lanes.at('qkv', `at + ${size}u * d`)}; change[d] = ${lanes.at('dOut', `to + ${size}u * d`)};
    shared_change = fma(change[d], ${lanes.at('out', `to + ${size}u * d`)}, shared_change);
    d_query[d] = ${type}(0.0);`,
  )}
  let log_sum = logSumExp[row * p.heads + head]; let mean = ${lanes.sum('shared_change')};
  means[row * p.heads + head] = mean;
  for (var k = span.x; k < span.x + span.y; k++) {
    let key = k * stride + (p.heads + kv) * ${headDim}u; var score = ${type}(0.0); var slope = ${type}(0.0);
    ${lanes.each(
      `let i = key + ${size}u * d; score = fma(query[d], ${lanes.at('qkv', 'i')}, score);
      slope = fma(change[d], ${lanes.at('qkv', 'i + width')}, slope);`,
    )}
    let d_score = exp(${lanes.sum('score')} * p.scale - log_sum) * (${lanes.sum('slope')} - mean) * p.scale;
    ${lanes.each(`d_query[d] = fma(${type}(d_score), ${lanes.at('qkv', `key + ${size}u * d`)}, d_query[d]);`)}
  }
  ${lanes.each(`${lanes.put('dQkv', `at + ${size}u * d`, 'd_query[d]')}`)}`,
  });
});

/** A thread has a key and its value: their gradients over the heads that share them and the queries that see them. */
export const backwardOfKeys = byDimension((headDim, lanes) => {
  const { size, type } = lanes;
  return shader({
    ...BACKWARD,
    name: `attention backward, keys ${headDim}`,
    memories: BACKWARD_MEMORIES,
    body: `let kv = group.y; let shared_by = p.heads / p.kv_heads; ${HEAD(headDim)}
  let row = group.x * ${THREADS}u + t; if (row >= p.rows) { return; }
  let rows = sequence_of(row); let end = rows.y; if (rows.x == end) { return; }
  let at = row * stride + (p.heads + kv) * ${headDim}u;
  ${lanes.declare('key', 'value', 'd_key', 'd_value')}
  ${lanes.each(
    `key[d] = ${lanes.at('qkv', `at + ${size}u * d`)}; value[d] = ${lanes.at('qkv', `at + width + ${size}u * d`)};
    d_key[d] = ${type}(0.0); d_value[d] = ${type}(0.0);`,
  )}
  for (var head = kv * shared_by; head < (kv + 1u) * shared_by; head++) {
    for (var q = row; q < end; q++) {
      let query = q * stride + head * ${headDim}u; let change = (q * p.heads + head) * ${headDim}u;
      var score = ${type}(0.0); var slope = ${type}(0.0);
      ${lanes.each(
        `score = fma(key[d], ${lanes.at('qkv', `query + ${size}u * d`)}, score);
        slope = fma(value[d], ${lanes.at('dOut', `change + ${size}u * d`)}, slope);`,
      )}
      let weight = exp(${lanes.sum('score')} * p.scale - logSumExp[q * p.heads + head]);
      let d_score = weight * (${lanes.sum('slope')} - means[q * p.heads + head]) * p.scale;
      ${lanes.each(
        `d_key[d] = fma(${type}(d_score), ${lanes.at('qkv', `query + ${size}u * d`)}, d_key[d]);
        d_value[d] = fma(${type}(weight), ${lanes.at('dOut', `change + ${size}u * d`)}, d_value[d]);`,
      )}
    }
  }
  ${lanes.each(
    `${lanes.put('dQkv', `at + ${size}u * d`, 'd_key[d]')} ${lanes.put('dQkv', `at + width + ${size}u * d`, 'd_value[d]')}`,
  )}`,
  });
});
