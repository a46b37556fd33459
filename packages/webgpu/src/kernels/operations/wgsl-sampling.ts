import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import { grid, rowShader } from '../shader.js';
import { SOFTMAX, THREADS } from './wgsl-softmax.js';

export const samplingKernels = (queue: CommandQueue): Pick<DeviceKernels, 'sampleTokens'> => ({
  sampleTokens: ({ tokens, logprobs, logits, uniforms, inverseTemperature, topK, topP, rows, vocabSize }) => {
    const memories = [tokens, logprobs, logits, uniforms, inverseTemperature, topK, topP];
    queue.run(sample, [rows, vocabSize], memories, grid(rows));
  },
});

/** Runs `body` for the tokens of a thread, a stretch of the vocabulary each, so that parts come in order of id. */
const overStretch = (body: string) => `for (var v = first; v < end; v++) { ${body} }`;
/** Runs `body` for the tokens of a thread, neighbours in neighbouring threads. */
const overVocabulary = (body: string) => `for (var v = t; v < p.vocab; v += ${THREADS}u) { ${body} }`;
/** The largest key for which `enough(key)` is true, which it is for 0 and up to some key: bit by bit. */
const largestKey = (name: string, enough: string) => `var ${name} = 0u;
    for (var bit = 0u; bit < 32u; bit++) {
      let next = ${name} | (0x80000000u >> bit); if (${enough}) { ${name} = next; }
    }`;

/** A key is an integer in the order of logits. Kept are keys above `least` and the first `ties` tokens that have it. */
const FUNCTIONS = `${SOFTMAX}
struct Wish { scale: f32, share: f32, most: u32 };
var<workgroup> shared_wish: Wish;
var<workgroup> masses: array<f32, ${THREADS}>;
var<workgroup> counts: array<u32, ${THREADS}>;
fn key_of(x: f32) -> u32 { let b = bitcast<u32>(x); return select(b | 0x80000000u, ~b, (b & 0x80000000u) != 0u); }
fn logit_of(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u));
}
fn count_from(t: u32, at: u32, key: u32) -> u32 {
  var n = 0.0; ${overVocabulary('if (key_of(logits[at + v]) >= key) { n += 1.0; }')}
  return u32(total(t, n));
}
fn mass_from(t: u32, at: u32, scale: f32, top: f32, key: u32) -> f32 {
  var m = 0.0;
  ${overVocabulary('if (key_of(logits[at + v]) >= key) { m += exp(shifted(logits[at + v], top, scale)); }')}
  return total(t, m);
}`;

/** The most probable token; of equal ones the first. */
const GREEDY = `var m = -3.0e38; var best = first;
    ${overStretch('if (logits[at + v] > m) { m = logits[at + v]; best = v; }')}
    masses[t] = m; counts[t] = best; workgroupBarrier();
    if (t == 0u) {
      var b = 0u; for (var i = 1u; i < ${THREADS}u; i++) { if (masses[i] > masses[b]) { b = i; } }
      tokens[r] = i32(counts[b]); logprobs[r] = logprob(at + counts[b], scale, s);
    }
    return;`;

const TOP_K = `${largestKey('low', 'count_from(t, at, next) >= wish.most')}
    least = low; ties = wish.most - count_from(t, at, low + 1u);`;

const TOP_P = `var all = s.sum;
    if (least > 0u) {
      all = mass_from(t, at, scale, s.top, least + 1u) + f32(ties) * exp(shifted(logit_of(least), s.top, scale));
    }
    let wanted = max(wish.share * all, 0.5); // the largest token, of mass 1, is kept even for a share of 0
    ${largestKey('low', 'next <= least || mass_from(t, at, scale, s.top, next) >= wanted')}
    let missing = wanted - mass_from(t, at, scale, s.top, low + 1u);
    let needed = max(1u, u32(ceil(missing / exp(shifted(logit_of(low), s.top, scale)))));
    ties = select(needed, min(ties, needed), low == least); least = low;`;

/** Whether the token \`v\` is kept, of those with the key \`least\` the \`seen\` before it. */
const KEEP = `let key = key_of(logits[at + v]); var keep = key > least;
      if (key == least) { keep = seen < ties; seen++; }`;

/** Inversion in order of token id: the first token at which the running mass exceeds the share of all. */
const INVERT = `var equal = 0u; ${overStretch('if (key_of(logits[at + v]) == least) { equal++; }')}
  counts[t] = equal; workgroupBarrier();
  var before = 0u; for (var i = 0u; i < t; i++) { before += counts[i]; }
  var mass = 0.0; var seen = before;
  ${overStretch(`${KEEP} if (keep) { mass += exp(shifted(logits[at + v], s.top, scale)); }`)}
  workgroupBarrier(); masses[t] = mass; counts[t] = before; workgroupBarrier();
  if (t == 0u) {
    var all = 0.0; for (var i = 0u; i < ${THREADS}u; i++) { all += masses[i]; }
    let wanted = uniforms[r] * all; var run = 0.0; var stretch = 0u; var reached = 0.0;
    for (var i = 0u; i < ${THREADS}u; i++) {
      if (masses[i] > 0.0) { stretch = i; reached = run; run += masses[i]; if (run > wanted) { break; } }
    }
    run = reached; seen = counts[stretch]; var chosen = 0u;
    for (var v = min(stretch * per, p.vocab); v < min((stretch + 1u) * per, p.vocab); v++) {
      ${KEEP}
      if (keep) { run += exp(shifted(logits[at + v], s.top, scale)); chosen = v; if (run > wanted) { break; } }
    }
    tokens[r] = i32(chosen); logprobs[r] = logprob(at + chosen, scale, s);
  }`;

const sample = rowShader({
  name: 'sample',
  numbers: ['rows', 'vocab'],
  memories: ['tokens: i32', 'logprobs', 'logits', 'uniforms', 'inverseTemperature', 'topK: i32', 'topP'],
  declare: FUNCTIONS,
  threads: `${THREADS}`,
  rows: 'p.rows',
  body: `let at = r * p.vocab;
  if (t == 0u) { shared_wish = Wish(inverseTemperature[r], topP[r], u32(max(topK[r], 0))); }
  let wish = workgroupUniformLoad(&shared_wish);
  let greedy = wish.scale == 0.0; let scale = select(wish.scale, 1.0, greedy);
  let s = softmax(t, at, scale);
  let per = (p.vocab + ${THREADS - 1}u) / ${THREADS}u; let first = min(t * per, p.vocab);
  let end = min(first + per, p.vocab);
  if (greedy) { ${GREEDY} }
  var least = 0u; var ties = p.vocab;
  if (wish.most > 0u && wish.most < p.vocab) { ${TOP_K} }
  if (wish.share < 1.0) { ${TOP_P} }
  ${INVERT}`,
});
