import { reduction, scratch, total } from '../shader.js';

/** Threads of the group that a row of logits has. */
export const THREADS = 128;

/**
 * A row's softmax of z = (logit - largest) scale: the largest logit, the sum of exp(z), and the sum of exp(z) z.
 * Training and sampling compute log-probs by the same functions, and have the same bits. A compiler may make one `fma`
 * of a product and a sum in one shader, and not in another: so the sum comes before the product, or the `fma` is ours.
 */
export const SOFTMAX = `${scratch(THREADS)}${total(THREADS)}
${reduction(THREADS, 'largest', (a, b) => `max(${a}, ${b})`)}
struct Softmax { top: f32, sum: f32, mean: f32 };
fn shifted(logit: f32, top: f32, scale: f32) -> f32 { return (logit - top) * scale; }
fn softmax(t: u32, at: u32, scale: f32) -> Softmax {
  var m = -3.0e38;
  for (var v = t; v < p.vocab; v += ${THREADS}u) { m = max(m, logits[at + v]); }
  let top = largest(t, m); var sum = 0.0; var mean = 0.0;
  for (var v = t; v < p.vocab; v += ${THREADS}u) {
    let z = shifted(logits[at + v], top, scale); let w = exp(z); sum += w; mean = fma(w, z, mean);
  }
  return Softmax(top, total(t, sum), total(t, mean));
}
fn logprob(at: u32, scale: f32, s: Softmax) -> f32 {
  return fma(log2(s.sum), ${-Math.LN2}, shifted(logits[at], s.top, scale));
}`;
