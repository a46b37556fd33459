import { reduction, scratch, total } from '../shader.js';

/** Threads of the group that a row of logits has. */
export const THREADS = 128;

/**
 * A row's softmax of z = logits scale: the largest z, the sum of exp(z - largest), and the sum of exp(z - largest) ·
 * (z - largest). Training and sampling compute log-probs by the same functions, so that they have the same bits.
 */
export const SOFTMAX = `${scratch(THREADS)}${total(THREADS)}
${reduction(THREADS, 'largest', (a, b) => `max(${a}, ${b})`)}
struct Softmax { top: f32, sum: f32, mean: f32 };
fn softmax(t: u32, at: u32, scale: f32) -> Softmax {
  var m = -3.0e38;
  for (var v = t; v < p.vocab; v += ${THREADS}u) { m = max(m, logits[at + v] * scale); }
  let top = largest(t, m); var sum = 0.0; var mean = 0.0;
  for (var v = t; v < p.vocab; v += ${THREADS}u) {
    let z = logits[at + v] * scale - top; let w = exp(z); sum += w; mean += w * z;
  }
  return Softmax(top, total(t, sum), total(t, mean));
}
fn logprob(at: u32, scale: f32, s: Softmax) -> f32 { return logits[at] * scale - s.top - log(s.sum); }`;
