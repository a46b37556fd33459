import { describe, expect, it } from 'vitest';
import { blank, body, close, dot, floats, get, noise, type Subject, sameBits, tailIsIntact } from './support.js';

const LENGTHS = [1, 5, 64, 97, 20_011];

const SETTINGS = { learningRate: 3e-3, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1, gradientScale: 0.5 };

/** @param sums How far a sum of squares may be off, as a share of it */
export function optimiserContract(subject: Subject, { sums }: { readonly sums: number }): void {
  describe('sumOfSquares and add', () => {
    it(`sum within ${sums}, reading and writing no more than asked`, () => {
      for (const length of LENGTHS) {
        const x = noise(length, 'x', 1e3);
        const sum = subject().sumOfSquares({ x: floats(subject(), x), length });
        expect(Math.abs(sum / dot(x, x) - 1)).toBeLessThan(sums);
        const before = noise(length, 'before');
        const out = floats(subject(), before);
        subject().add({ out, x: floats(subject(), x), length });
        sameBits(
          body(out),
          before.map((value, i) => value + get(x, i)),
          'add',
        );
        expect(tailIsIntact(out)).toBe(true);
      }
    });

    it('keep a not-a-number', () => {
      expect(subject().sumOfSquares({ x: floats(subject(), [1, Number.NaN, 2]), length: 3 })).toBeNaN();
      expect(subject().sumOfSquares({ x: floats(subject(), [1, Number.POSITIVE_INFINITY]), length: 2 })).toBe(
        Number.POSITIVE_INFINITY,
      );
    });
  });

  describe('adamw', () => {
    it('follows its formula over several steps', () => {
      for (const length of LENGTHS) {
        const start = noise(length, 'weights');
        const weights = floats(subject(), start);
        const first = floats(subject(), new Float32Array(length));
        const second = floats(subject(), new Float32Array(length));
        const expected = {
          weights: Float64Array.from(start),
          m: new Float64Array(length),
          v: new Float64Array(length),
        };
        for (let step = 1; step <= 6; step++) {
          const gradient = noise(length, `gradient ${step}`, step === 2 ? 0 : 2);
          const { learningRate, beta1, beta2, epsilon, weightDecay, gradientScale } = SETTINGS;
          gradient.forEach((value, i) => {
            const g = value * gradientScale;
            expected.m[i] = beta1 * get(expected.m, i) + (1 - beta1) * g;
            expected.v[i] = beta2 * get(expected.v, i) + (1 - beta2) * g ** 2;
            const mHat = get(expected.m, i) / (1 - beta1 ** step);
            const vHat = get(expected.v, i) / (1 - beta2 ** step);
            const decayed = get(expected.weights, i) * (1 - learningRate * weightDecay);
            expected.weights[i] = decayed - (learningRate * mHat) / (Math.sqrt(vHat) + epsilon);
          });
          const given = floats(subject(), gradient);
          subject().adamw({
            weights,
            gradient: given,
            firstMoment: first,
            secondMoment: second,
            length,
            settings: { ...SETTINGS, step },
          });
          sameBits(body(given), gradient, 'the gradient');
        }
        close(weights, expected.weights, 1e-6, `weights [${length}]`);
        close(first, expected.m, 1e-6, 'first moment');
        close(second, expected.v, 1e-6, 'second moment');
      }
    });

    it('leaves weights alone without gradient or learning rate', () => {
      const start = noise(97, 'weights');
      const weights = floats(subject(), start);
      const [first, second] = [floats(subject(), new Float32Array(97)), floats(subject(), new Float32Array(97))];
      const zeros = floats(subject(), new Float32Array(97));
      subject().adamw({
        weights,
        gradient: zeros,
        firstMoment: first,
        secondMoment: second,
        length: 97,
        settings: { ...SETTINGS, weightDecay: 0, step: 1 },
      });
      sameBits(body(weights), start, 'without gradient');
      const gradient = floats(subject(), noise(97, 'gradient'));
      subject().adamw({
        weights,
        gradient,
        firstMoment: first,
        secondMoment: second,
        length: 97,
        settings: { ...SETTINGS, learningRate: 0, step: 2 },
      });
      sameBits(body(weights), start, 'without learning rate');
    });

    it('steps by the learning rate on the first step, however small the gradient', () => {
      const weights = floats(subject(), [1, 1, 1]);
      const [first, second] = [blank(subject(), 3).fill(0), blank(subject(), 3).fill(0)];
      const settings = { ...SETTINGS, weightDecay: 0, epsilon: 0, step: 1 };
      subject().adamw({
        weights,
        gradient: floats(subject(), [1e-12, -1e3, 1]),
        firstMoment: first,
        secondMoment: second,
        length: 3,
        settings,
      });
      close(weights.slice(0, 3), [0.997, 1.003, 0.997], 1e-6, 'weights');
    });
  });
}
