import { isBfloat16, widen } from '../bfloat16.js';
import type { HostKernels } from '../kernels.js';

export const embed: HostKernels['embed'] = ({ out, table, tokens, rows, width }) => {
  for (let row = 0; row < rows; row++) {
    const from = (tokens[row] as number) * width;
    const to = out.subarray(row * width, (row + 1) * width);
    if (isBfloat16(table)) widen(to, table.subarray(from, from + width));
    else to.set(table.subarray(from, from + width));
  }
};

export const embedBackward: HostKernels['embedBackward'] = ({ dTable, dOut, tokens, rows, width }) => {
  for (let row = 0; row < rows; row++) {
    const to = (tokens[row] as number) * width;
    for (let i = 0; i < width; i++) dTable[to + i] = (dTable[to + i] as number) + (dOut[row * width + i] as number);
  }
};

/** Calls `visit` with a row and those before it in its sequence, as far as the taps reach. */
function forWindow(previous: Int32Array, row: number, taps: number, visit: (row: number, tap: number) => void): void {
  for (let [at, tap] = [row, taps - 1]; tap >= 0; tap--) {
    visit(at, tap);
    const before = previous[at] as number;
    if (before === at) return;
    at = before;
  }
}

/** B · x in float32, as a cache holds it. */
const productAt = (bcx: Float32Array, row: number, width: number, i: number) =>
  Math.fround((bcx[row * 3 * width + i] as number) * (bcx[(row * 3 + 2) * width + i] as number));

export const convolution: HostKernels['convolution'] = ({ out, bcx, weight, previous, rows, width, taps }) => {
  for (let r = 0; r < rows; r++) {
    for (let i = 0; i < width; i++) {
      let sum = 0;
      forWindow(previous, r, taps, (row, tap) => {
        sum += (weight[tap * width + i] as number) * productAt(bcx, row, width, i);
      });
      out[r * width + i] = (bcx[(r * 3 + 1) * width + i] as number) * sum;
    }
  }
};

/**
 * With u = B · x and g = dOut · C: dC = dOut · Σ weight[tap] · u, dWeight[tap] += g · u and du += g · weight[tap] for
 * all tokens of a window, then dB = du · x and dx = du · B.
 */
export const convolutionBackward: HostKernels['convolutionBackward'] = ({
  dBcx,
  dWeight,
  dOut,
  bcx,
  weight,
  previous,
  rows,
  width,
  taps,
}) => {
  const [dU, dTaps] = [new Float64Array(rows * width), Float64Array.from(dWeight)];
  for (let r = 0; r < rows; r++) {
    for (let i = 0; i < width; i++) {
      const change = dOut[r * width + i] as number;
      const g = change * (bcx[(r * 3 + 1) * width + i] as number);
      let sum = 0;
      forWindow(previous, r, taps, (row, tap) => {
        const [at, product] = [tap * width + i, productAt(bcx, row, width, i)];
        sum += (weight[at] as number) * product;
        dTaps[at] = (dTaps[at] as number) + g * product;
        dU[row * width + i] = (dU[row * width + i] as number) + g * (weight[at] as number);
      });
      dBcx[(r * 3 + 1) * width + i] = change * sum;
    }
  }
  dWeight.set(dTaps);
  for (let r = 0; r < rows; r++) {
    for (let [i, b] = [0, r * 3 * width]; i < width; i++, b++) {
      const x = b + 2 * width;
      dBcx[b] = (dU[r * width + i] as number) * (bcx[x] as number);
      dBcx[x] = (dU[r * width + i] as number) * (bcx[b] as number);
    }
  }
};

export const convolutionCached: HostKernels['convolutionCached'] = ({
  out,
  products,
  bcx,
  weight,
  slots,
  positions,
  rows,
  capacity,
  width,
  taps,
}) => {
  const placeOf = (row: number) => ((slots[row] as number) * capacity + (positions[row] as number)) * width;
  for (let r = 0; r < rows; r++) {
    for (let i = 0; i < width; i++) products[placeOf(r) + i] = productAt(bcx, r, width, i);
  }
  for (let r = 0; r < rows; r++) {
    const seen = Math.min(taps, (positions[r] as number) + 1);
    for (let i = 0; i < width; i++) {
      let sum = 0;
      for (let j = 0; j < seen; j++)
        sum += (weight[(taps - 1 - j) * width + i] as number) * (products[placeOf(r) - j * width + i] as number);
      out[r * width + i] = (bcx[(r * 3 + 1) * width + i] as number) * sum;
    }
  }
};

export const convolutionCopy: HostKernels['convolutionCopy'] = ({ products, from, to, length, capacity, width }) => {
  const [source, target] = [from * capacity * width, to * capacity * width];
  products.copyWithin(target, source, source + length * width);
};

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

/** out = gate s(gate) · up. */
const gated =
  (s: (gate: number) => number): HostKernels['swiglu'] =>
  ({ out, gateUp, rows, feedForward }) => {
    for (let row = 0; row < rows; row++) {
      const at = row * feedForward;
      for (let i = 0; i < feedForward; i++) {
        const gate = gateUp[2 * at + i] as number;
        out[at + i] = gate * s(gate) * (gateUp[2 * at + feedForward + i] as number);
      }
    }
  };

/** With s = sigmoid(z) and `slope` = dz / d gate: d (gate s) / d gate = s (1 + gate (1 − s) slope). */
const gatedBackward =
  (sOf: (gate: number) => number, slope: (gate: number) => number): HostKernels['swigluBackward'] =>
  ({ dGateUp, dOut, gateUp, rows, feedForward }) => {
    for (let row = 0; row < rows; row++) {
      const at = row * feedForward;
      for (let i = 0; i < feedForward; i++) {
        const gate = gateUp[2 * at + i] as number;
        const up = gateUp[2 * at + feedForward + i] as number;
        const change = dOut[at + i] as number;
        const s = sOf(gate);
        dGateUp[2 * at + i] = change * up * s * (1 + gate * (1 - s) * slope(gate));
        dGateUp[2 * at + feedForward + i] = change * gate * s;
      }
    }
  };

export const swiglu = gated(sigmoid);
export const swigluBackward = gatedBackward(sigmoid, () => 1);

/** gelu(g) = g (1 + tanh(z / 2)) / 2 = g sigmoid(z) with z = 2 sqrt(2/π) (g + 0.044715 g³). */
const GELU_SCALE = 2 * Math.sqrt(2 / Math.PI);
const GELU_CUBE = 0.044715;
const geluGate = (gate: number) => sigmoid(GELU_SCALE * gate * (1 + GELU_CUBE * gate * gate));
const geluSlope = (gate: number) => GELU_SCALE * (1 + 3 * GELU_CUBE * gate * gate);

export const geglu = gated(geluGate);
export const gegluBackward = gatedBackward(geluGate, geluSlope);
