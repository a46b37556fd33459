/** The gradient of attention, in blocks and tiles as forward; scores are computed again. */
import { shader } from '../shader.js';
import {
  BLOCK_NUMBERS,
  backwardSize,
  byDimension,
  eachPair,
  eachRun,
  eachVector,
  inWindow,
  type Lanes,
  linesOfRun,
  PLACE_OF_LINE,
  placeInHeads,
  placeInQkv,
  RUN,
  RUN_IN_BATCH,
  sumsOf,
} from './wgsl-attention-shaders.js';

const NUMBERS = [...BLOCK_NUMBERS, 'window', 'scale!', 'zero!'];
const MEMORIES = ['dQkv', 'dOut', 'logSumExp', 'means', 'qkv', 'starts: i32'];

/** Two vectors of each line of a block and of each of a tile, and as many numbers of each pair as are named. */
function declareBlock(lanes: Lanes, pairs: readonly string[]): string {
  const { type, count } = lanes;
  const { lines, tile } = backwardSize(lanes.columns);
  const arrays = (names: readonly string[], of: string, length: number) =>
    names.map((name) => `var<workgroup> ${name}: array<${of}, ${length}>;`).join(' ');
  return `${RUN} ${arrays(['line_a', 'line_b'], type, lines * count)}
${arrays(['tile_a', 'tile_b'], type, tile * (count + 1))} ${arrays(pairs, 'f32', lines * tile)}
${RUN_IN_BATCH}`;
}
const FIND = 'run_in_batch(row, end)';
const PRODUCTS = [
  { name: 'score', line: 'line_a', other: 'tile_a' },
  { name: 'slope', line: 'line_b', other: 'tile_b' },
];

/**
 * A block has queries: their gradients over their keys in order. It leaves behind the change that all keys of a query
 * share: the dot product of its output and the gradient on that.
 */
export const backwardOfQueries = byDimension((headDim, lanes) => {
  const { type, count, size, threads, at, put, sum } = lanes;
  const block = backwardSize(lanes.columns);
  const { lines, tile } = block;
  const sums = sumsOf(lanes, block, [{ name: 'd_query', factors: 'slopes', vectors: 'tile_a' }]);
  const key = `(rows.z + k0 + k) * stride + (p.heads + kv) * ${headDim}u + ${size}u * i`;
  return shader({
    name: `attention backward, queries ${headDim}`,
    numbers: NUMBERS,
    memories: [...MEMORIES, 'out'],
    threads: `${threads}`,
    declare: `${declareBlock(lanes, ['slopes'])}
var<workgroup> log_sums: array<f32, ${lines}>; var<workgroup> mean_of: array<f32, ${lines}>;`,
    body: eachRun(
      FIND,
      `${linesOfRun(headDim)}
  ${eachVector(
    lanes,
    'lines',
    `let l = k; line_a[e] = ${at('qkv', `${placeInQkv(headDim)} + ${size}u * i`)};
    line_b[e] = ${at('dOut', `${placeInHeads(headDim)} + ${size}u * i`)};`,
  )}
  workgroupBarrier();
  if (t < lines) {
    let l = t; var mean = ${type}(0.0); let place = ${PLACE_OF_LINE}; log_sums[l] = logSumExp[place];
    for (var d = 0u; d < ${count}u; d++) {
      mean = fma(line_b[l * ${count}u + d], ${at('out', `place * ${headDim}u + ${size}u * d`)}, mean);
    }
    mean_of[l] = ${sum('mean')}; means[place] = mean_of[l];
  }
  ${sums.declare}
  let seen = rows.x + rows.y - rows.z;
  for (var k0 = 0u; k0 < seen; k0 += ${tile}u) {
    let here = min(${tile}u, seen - k0);
    workgroupBarrier();
    ${eachVector(
      lanes,
      'here',
      `tile_a[k * ${count + 1}u + i] = ${at('qkv', key)}; tile_b[k * ${count + 1}u + i] = ${at('qkv', `${key} + width`)};`,
    )}
    workgroupBarrier();
    ${eachPair(
      lanes,
      block,
      PRODUCTS,
      `let d_score = exp(score * p.scale - log_sums[l]) * (slope - mean_of[l]) * p.scale;
      let query = rows.x + l / heads - rows.z;
      slopes[l * ${tile}u + k] = select(0.0, d_score, k0 + k <= query && ${inWindow('k0 + k', 'query')});`,
    )}
    workgroupBarrier();
    ${sums.add}
  }
  ${sums.each((i) => `let to = ${placeInQkv(headDim)} + ${size}u * d; ${put('dQkv', 'to', `d_query_${i}`)}`)}`,
    ),
  });
});

/** A block has keys and values: their gradients over the heads that share them and the queries that see them. */
export const backwardOfKeys = byDimension((headDim, lanes) => {
  const { count, size, threads, at, put } = lanes;
  const block = backwardSize(lanes.columns);
  const { tile } = block;
  const sums = sumsOf(lanes, block, [
    { name: 'd_key', factors: 'slopes', vectors: 'tile_a' },
    { name: 'd_value', factors: 'weights', vectors: 'tile_b' },
  ]);
  const key = `(rows.x + k) * stride + (p.heads + kv) * ${headDim}u + ${size}u * i`;
  return shader({
    name: `attention backward, keys ${headDim}`,
    numbers: NUMBERS,
    memories: MEMORIES,
    threads: `${threads}`,
    declare: `${declareBlock(lanes, ['weights', 'slopes'])}
var<workgroup> log_sums: array<f32, ${tile}>; var<workgroup> mean_of: array<f32, ${tile}>;`,
    body: eachRun(
      FIND,
      `  let width = p.kv_heads * ${headDim}u; let stride = p.heads * ${headDim}u + 2u * width;
  let kv = group.y; let shared_by = p.heads / p.kv_heads; let lines = rows.y;
  ${eachVector(lanes, 'lines', `line_a[e] = ${at('qkv', key)}; line_b[e] = ${at('qkv', `${key} + width`)};`)}
  ${sums.declare}
  for (var head = kv * shared_by; head < (kv + 1u) * shared_by; head++) {
    for (var q0 = rows.x; q0 < rows.w; q0 += ${tile}u) {
      let here = min(${tile}u, rows.w - q0);
      workgroupBarrier();
      ${eachVector(
        lanes,
        'here',
        `tile_a[k * ${count + 1}u + i] = ${at('qkv', `(q0 + k) * stride + head * ${headDim}u + ${size}u * i`)};
        tile_b[k * ${count + 1}u + i] = ${at('dOut', `((q0 + k) * p.heads + head) * ${headDim}u + ${size}u * i`)};`,
      )}
      if (t < here) {
        let place = (q0 + t) * p.heads + head; log_sums[t] = logSumExp[place]; mean_of[t] = means[place];
      }
      workgroupBarrier();
      ${eachPair(
        lanes,
        block,
        PRODUCTS,
        `let seen = k < here && q0 + k >= rows.x + l && ${inWindow('rows.x + l', 'q0 + k')};
        let weight = select(0.0, exp(score * p.scale - log_sums[k]), seen);
        weights[l * ${tile}u + k] = weight; slopes[l * ${tile}u + k] = weight * (slope - mean_of[k]) * p.scale;`,
      )}
      workgroupBarrier();
      ${sums.add}
    }
  }
  ${sums.each(
    (i) => `let to = (rows.x + l) * stride + (p.heads + kv) * ${headDim}u + ${size}u * d;
    ${put('dQkv', 'to', `d_key_${i}`)} ${put('dQkv', 'to + width', `d_value_${i}`)}`,
  )}`,
    ),
  });
});
