/** Kernels that replace several calls by one dispatch (native/manifest/fused.ts). */
import { linearOntoByCalls } from '@drmas/engine/kernels';
import { shareWindow } from '../bind-groups.js';
import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import { rowsOfPart } from '../parts.js';
import { groupsOf, tileOf, WIDE } from './wgsl-linear.js';
import { type DeviceMatrix, isInBfloat16, matrixOf } from './wgsl-pack.js';
import { INTO, type Onto, productShader } from './wgsl-products.js';

type Calls = Pick<DeviceKernels, 'copy' | 'repeat' | 'linear' | 'bfloat16Linear'>;
type FusedProducts = Pick<NonNullable<DeviceKernels['fused']>, 'linearOnto' | 'partOfWeightGradient'>;

/** @param binding Bytes of a binding at most; a product with a matrix above it is computed by calls. */
export function fusedProducts(queue: CommandQueue, binding: number, calls: Calls): FusedProducts {
  const fits = (matrix: DeviceMatrix, inputs: number, outputs: number) => {
    const [rows, width] = matrix.byInputs ? [inputs, outputs] : [outputs, inputs];
    return rowsOfPart(binding, matrixOf(matrix, rows, width)) >= rows;
  };
  return {
    linearOnto: (given) => {
      const { inBfloat16, out, before, x, packed, share, rows, inputs, outputs } = given;
      if (rows === 0) return;
      const inPlace = before !== undefined && 'residual' in before && before.residual === out;
      const beside = before === undefined || inPlace ? undefined : 'bias' in before ? before.bias : before.residual;
      const whole =
        fits(packed, inputs, outputs) &&
        (share === undefined || (!share.packed.byInputs && fits(share.packed, share.width, outputs))) &&
        // A bias may be next to its matrix in memory.
        (beside === undefined || !shareWindow(beside, packed));
      if (!whole) {
        const linear = (inBfloat16 ? calls.bfloat16Linear : calls.linear) as DeviceKernels['linear'];
        linearOntoByCalls({ ...calls, linear }, given);
        return;
      }
      const tile = tileOf(rows, true);
      const { byInputs } = packed;
      const onto = { before: beside !== undefined, share: share && kindOf(share.packed) };
      const shader = productShader({
        tile,
        aByK: false,
        bByK: byInputs,
        bInBfloat16: isInBfloat16(packed),
        inBfloat16,
        onto,
      });
      const into = inPlace ? INTO.addSum : INTO.replace;
      const numbers = [rows, outputs, inputs, into, outputs, inputs, byInputs ? outputs : inputs, 1];
      const memories: DeviceMatrix[] = [out.subarray(0, rows * outputs), x.subarray(0, rows * inputs)];
      memories.push(packed.subarray(0, inputs * outputs));
      let work = rows * inputs * outputs;
      if (before !== undefined && beside !== undefined) {
        const bias = 'bias' in before;
        numbers.push(bias ? 0 : outputs);
        memories.push(beside.subarray(0, bias ? outputs : rows * outputs));
      }
      if (share !== undefined) {
        numbers.push(share.width);
        memories.push(share.x.subarray(0, rows * share.width), share.packed.subarray(0, share.width * outputs));
        work += rows * share.width * outputs;
      }
      queue.run(shader, numbers, memories, groupsOf(tile, rows, outputs), work);
    },
    partOfWeightGradient: ({ inBfloat16, dWeight, scale, x, xStride, dOut, dOutStride, rows, inputs, outputs }) => {
      if (rows === 0) return;
      const shader = productShader({ tile: WIDE, aByK: true, bByK: true, bInBfloat16: false, inBfloat16 });
      const numbers = [inputs, outputs, rows, INTO.addScaled, outputs, xStride, dOutStride, scale];
      const memories = [
        dWeight.subarray(0, inputs * outputs),
        x.subarray(0, (rows - 1) * xStride + inputs),
        dOut.subarray(0, (rows - 1) * dOutStride + outputs),
      ];
      queue.run(shader, numbers, memories, groupsOf(WIDE, inputs, outputs), rows * inputs * outputs);
    },
  };
}

const kindOf = (matrix: DeviceMatrix): Onto['share'] => (isInBfloat16(matrix) ? 'bfloat16' : 'float32');
