import type { NigtStep, SgdStep } from '@drmas/engine/internal/tensor/kernel-arguments';
import { describe, expect, it } from 'vitest';
import { blank, body, close, dot, floats, get, noise, type Subject, sameBits, tailIsIntact } from './support.js';

const LENGTHS = [1, 5, 64, 97, 2_011];

/** The tolerance for single numbers of an implementation that computes in float32. */
const NEAR = 1e-6;

export function memoryContract(subject: Subject): void {
  describe('memory', () => {
    it('is read as copies that share no memory', async () => {
      const kernels = subject();
      const [x, i, h] = [kernels.allocate(5), kernels.allocateIntegers(3), kernels.allocateBfloat16(7)];
      const given = [noise(5, 'floats'), Int32Array.of(4, -1, 2), Uint16Array.of(1, 2, 3)] as const;
      kernels.write(x, given[0]);
      kernels.write(i, given[1]);
      kernels.write(h, given[2]);
      const [floatsRead, integersRead, halvesRead] = await kernels.read([x, i.subarray(1), h]);
      kernels.fill({ x, value: 9 });
      sameBits(floatsRead, given[0], 'float32');
      sameBits(integersRead, Int32Array.of(-1, 2), 'int32');
      sameBits(halvesRead, Uint16Array.of(1, 2, 3, 0, 0, 0, 0), 'bfloat16');
      expect(halvesRead.buffer.byteLength).toBeLessThanOrEqual(16);
    });

    it('serves integers where it served floats', async () => {
      const kernels = subject();
      const memory = kernels.allocate(128).subarray(64, 70);
      const integers = kernels.integersIn(memory);
      kernels.write(integers, Int32Array.of(7, 8, 9, 10, 11, 12));
      expect(integers).toHaveLength(6);
      expect((await kernels.read([integers]))[0]).toEqual(Int32Array.of(7, 8, 9, 10, 11, 12));
    });

    it('is copied, filled and repeated, and nothing beside it', () => {
      const kernels = subject();
      for (const length of LENGTHS) {
        const from = noise(length, 'copied');
        const to = blank(kernels, length);
        kernels.copy({ to, from: floats(kernels, from).subarray(0, length) });
        sameBits(body(to), from, 'copy');
        kernels.fill({ x: to.subarray(0, length - 1), value: -2.5 });
        sameBits(
          body(to),
          from.map((value, i) => (i < length - 1 ? -2.5 : value)),
          'fill',
        );
        const rows = blank(kernels, 3 * length);
        kernels.repeat({ out: rows, row: floats(kernels, from).subarray(0, length), rows: 3 });
        sameBits(body(rows), Float32Array.of(...from, ...from, ...from), 'repeat');
        expect([to, rows].every(tailIsIntact)).toBe(true);
      }
    });

    it('has blocks of columns that are scaled, stored or added', () => {
      const kernels = subject();
      const [rows, columns, toStride, fromStride] = [7, 33, 80, 40];
      const from = noise(rows * fromStride, 'block');
      const before = noise(rows * toStride, 'before');
      for (const [scale, accumulate] of [
        [1, false],
        [0.7, false],
        [-1.5, true],
      ] as const) {
        const to = floats(kernels, before);
        const [part, block] = [to.subarray(5), floats(kernels, from).subarray(2)];
        kernels.copyBlock({ to: part, toStride, from: block, fromStride, rows, columns, scale, accumulate });
        const expected = before.map((value, at) => {
          const [r, c] = [Math.floor((at - 5) / toStride), (at - 5) % toStride];
          if (at < 5 || c >= columns) return value;
          return (accumulate ? value : 0) + scale * get(from, r * fromStride + c + 2);
        });
        if (scale === 1) sameBits(body(to), expected, 'copyBlock');
        else close(to, expected, NEAR, `copyBlock, ${accumulate ? 'added' : 'put in place'}`);
      }
    });

    it('of no numbers is nothing to do', () => {
      const kernels = subject();
      const [empty, one] = [kernels.allocate(0), floats(kernels, [3])];
      kernels.copy({ to: one, from: empty });
      kernels.fill({ x: empty, value: 1 });
      kernels.repeat({ out: empty, row: empty, rows: 0 });
      kernels.copyBlock({
        to: one,
        toStride: 1,
        from: empty,
        fromStride: 1,
        rows: 0,
        columns: 1,
        scale: 2,
        accumulate: false,
      });
      kernels.valueHead({ values: empty, hidden: empty, head: one, rows: 0, width: 0 });
      sameBits(body(one), Float32Array.of(3), 'what is beside nothing');
    });
  });

  describe('sgd', () => {
    const settings: SgdStep = {
      learningRate: 0.03,
      momentum: 0.9,
      nesterov: false,
      weightDecay: 0.01,
      gradientScale: 0.5,
    };

    it('follows its formula with and without a memory of directions', () => {
      for (const [length, nesterov, remembers] of [
        [1, false, false],
        [97, false, true],
        [2_011, true, true],
      ] as const) {
        const start = noise(length, 'weights');
        const weights = floats(subject(), start);
        const directions = remembers ? floats(subject(), new Float32Array(length)) : undefined;
        const expected = Float64Array.from(start);
        const velocity = new Float64Array(length);
        for (let step = 1; step <= 3; step++) {
          const gradient = noise(length, `gradient ${step}`);
          expected.forEach((weight, i) => {
            const g = get(gradient, i) * 0.5 + 0.01 * weight;
            velocity[i] = (remembers ? 0.9 : 0) * get(velocity, i) + g;
            expected[i] = weight - 0.03 * (nesterov ? g + 0.9 * get(velocity, i) : get(velocity, i));
          });
          const given = floats(subject(), gradient);
          subject().sgd({ weights, gradient: given, directions, length, settings: { ...settings, nesterov } });
          sameBits(body(given), gradient, 'the gradient');
        }
        close(weights, expected, NEAR, `weights [${length}]`);
        if (directions !== undefined) close(directions, velocity, NEAR, 'directions');
      }
    });
  });

  describe('nigt', () => {
    const settings: Omit<NigtStep, 'step'> = { learningRate: 0.2, momentum: 0.6, gradientScale: 0.5 };

    it('moves the iterate by the learning rate along its direction, and the weights ahead of it', () => {
      for (const length of LENGTHS) {
        const start = noise(length, 'weights');
        const weights = floats(subject(), start);
        const [direction, ahead] = [new Float32Array(length), new Float32Array(length)].map((zeros) =>
          floats(subject(), zeros),
        ) as [Float32Array, Float32Array];
        const d = new Float64Array(length);
        const iterate = Float64Array.from(start);
        for (let step = 1; step <= 3; step++) {
          const gradient = noise(length, `gradient ${step}`);
          const kept = step === 1 ? 0 : 0.6;
          d.forEach((value, i) => {
            d[i] = kept * value + (1 - kept) * 0.5 * get(gradient, i);
          });
          const norm = Math.sqrt(dot(d, d));
          const move = d.map((value) => (-0.2 * value) / norm);
          iterate.forEach((value, i) => {
            iterate[i] = value + get(move, i);
          });
          subject().nigt({
            weights,
            gradient: floats(subject(), gradient),
            direction,
            ahead,
            length,
            settings: { ...settings, step },
          });
          close(
            ahead,
            move.map((value) => 1.5 * value),
            1e-5,
            'ahead',
          );
          close(
            weights,
            iterate.map((value, i) => value + 1.5 * get(move, i)),
            1e-5,
            `weights [${length}]`,
          );
        }
        close(direction, d, NEAR, 'direction');
      }
    });

    it('stays unchanged without a gradient', () => {
      const start = noise(5, 'weights');
      const weights = floats(subject(), start);
      const [direction, ahead] = [floats(subject(), new Float32Array(5)), floats(subject(), new Float32Array(5))];
      const none = floats(subject(), new Float32Array(5));
      subject().nigt({ weights, gradient: none, direction, ahead, length: 5, settings: { ...settings, step: 1 } });
      sameBits(body(weights), start, 'weights');
    });
  });

  describe('the value head', () => {
    const [rows, width] = [17, 97];
    const hidden = noise(rows * width, 'hidden');
    const head = noise(width + 1, 'head');
    const row = (r: number) => hidden.subarray(r * width, (r + 1) * width);

    it('is a product with a bias, row by row', () => {
      const values = blank(subject(), rows);
      subject().valueHead({ values, hidden: floats(subject(), hidden), head: floats(subject(), head), rows, width });
      const expected = Float64Array.from({ length: rows }, (_, r) => get(head, width) + dot(row(r), head.slice(0, -1)));
      close(values, expected, 1e-5, 'values');
      const alone = blank(subject(), 1);
      subject().valueHead({
        values: alone,
        hidden: floats(subject(), row(5)),
        head: floats(subject(), head),
        rows: 1,
        width,
      });
      sameBits(body(alone), values.subarray(5, 6), 'a row alone');
    });

    it('leads slopes back to the stream and adds to its own gradient', () => {
      const slopes = Float64Array.from(noise(rows, 'slopes'));
      const before = noise(width + 1, 'before');
      const [dHidden, dHead] = [blank(subject(), rows * width), floats(subject(), before)];
      const [h, w] = [floats(subject(), hidden), floats(subject(), head)];
      subject().valueHeadBackward({ dHidden, dHead, slopes, hidden: h, head: w, rows, width });
      const backwards = hidden.map((_, at) => get(slopes, Math.floor(at / width)) * get(head, at % width));
      close(dHidden, backwards, NEAR, 'dHidden');
      const expected = Float64Array.from(before, (value, i) => {
        let sum = value;
        for (let r = 0; r < rows; r++) sum += get(slopes, r) * (i < width ? get(row(r), i) : 1);
        return sum;
      });
      close(dHead, expected, 1e-5, 'dHead');
    });
  });
}
