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
