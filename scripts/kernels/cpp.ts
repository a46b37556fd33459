import {
  type BufferParameter,
  buffersOf,
  countOf,
  everyKernel,
  GENERATED,
  holdsIndices,
  isSizeFunction,
  type Kernel,
  kernels,
  type Parameter,
  rewriteCalls,
  versionsOf,
} from './declarations.js';

const WIDTH = 120;

/** `head` and the items after it, broken where a line is full and aligned with the first item. */
export function wrapped(head: string, items: readonly string[], tail: string): string {
  const indent = ' '.repeat(head.length);
  const lines: string[] = [];
  let line = head;
  for (const [i, item] of items.entries()) {
    const text = `${item}${i === items.length - 1 ? tail : ','}`;
    const separator = line === head || line === indent ? '' : ' ';
    if (line.trim() !== '' && line !== head && line.length + separator.length + text.length > WIDTH) {
      lines.push(line);
      line = `${indent}${text}`;
    } else line += `${separator}${text}`;
  }
  return [...lines, items.length === 0 ? `${head}${tail}` : line].join('\n');
}

const file = (lines: readonly string[]) => `// ${GENERATED}\n${lines.join('\n')}\n`;

const elementType = ({ element }: BufferParameter, version: string) =>
  element === 'bf16' || (element === 'weights' && version.endsWith('Bfloat16'))
    ? 'Bfloat16'
    : element === 'weights' || element === 'f32'
      ? 'float'
      : 'int32_t';

const AdamWFields = ['learningRate', 'beta1', 'beta2', 'epsilon', 'weightDecay', 'step', 'gradientScale'];
const HeadsFields = ['heads', 'kvHeads', 'headDim', 'window'];

/** A parameter of the C++ function `version`. */
function cppParameter(parameter: Parameter, version: string): string {
  const { name } = parameter;
  switch (parameter.kind) {
    case 'buffer':
      return `${parameter.readOnly ? 'const ' : ''}${elementType(parameter, version)}* ${name}`;
    case 'size':
      return `long ${name}`;
    case 'f32':
      return `float ${name}`;
    case 'bool':
      return `bool ${name}`;
    case 'heads':
      return `Heads ${name}`;
    case 'adamw':
      return `const AdamW& ${name}`;
  }
}

const returnType = ({ returns }: Kernel) => ({ size: 'size_t', number: 'double', nothing: 'void' })[returns];
/** Kernels that only return a size compute nothing in parallel. */
const takesPool = ({ returns }: Kernel) => returns !== 'size';

/** native/generated/table.h: the functions of one instruction set. */
export function tableHeader(): string {
  const members = kernels.flatMap((kernel) =>
    versionsOf(kernel).map((version) => {
      const parameters = kernel.parameters.map((parameter) => cppParameter(parameter, version));
      return wrapped(
        `  ${returnType(kernel)} (*${version})(`,
        takesPool(kernel) ? ['Pool&', ...parameters] : parameters,
        ');',
      );
    }),
  );
  return file([
    '// What one instruction set offers: the kernels as functions on raw pointers.',
    '#pragma once',
    '#include <cstddef>',
    '#include <cstdint>',
    '',
    '#include "../types.h"',
    '',
    'namespace drmas {',
    '',
    'struct KernelTable {',
    '  const char* isa;',
    '  const char* bfloat16Products;  // how `bfloat16Linear` multiplies',
    ...members,
    '};',
    '',
    '}  // namespace drmas',
  ]);
}

const includes = (of: readonly Kernel[]) =>
  [...new Set(of.map(({ header }) => header))].sort().map((header) => `#include "../${header}"`);

/** The C++ template's instance that is a version of a kernel. */
const instance = (kernel: Kernel, version: string) =>
  kernel.hasBfloat16 ? `${kernel.name}<${version === kernel.name ? 'float' : 'Bfloat16'}>` : version;

/** The units that an instruction set's kernels are compiled in, side by side: native/NAME.cpp each. */
export const PARTS = ['kernels', 'products', 'blocks'] as const;
type Part = (typeof PARTS)[number];

const partOf = ({ header }: Kernel): Part =>
  !header.startsWith('kernels/products/') ? 'kernels' : /blocks\.h$/.test(header) ? 'blocks' : 'products';

/** native/generated/NAME.h: the kernels of one part, for the instruction set that it is compiled for. */
export function partHeader(part: Part): string {
  const ofPart = kernels.filter((kernel) => partOf(kernel) === part);
  const entries = ofPart.flatMap((kernel) =>
    versionsOf(kernel).map((version) => `  table.${version} = ${instance(kernel, version)};`),
  );
  return file([
    `// The kernels of ${part}.cpp in the table of the instruction set that it is compiled for.`,
    '#pragma once',
    ...includes(ofPart),
    '#include "table.h"',
    '',
    'namespace drmas {',
    'namespace DRMAS_ISA {',
    '',
    `inline void ${part}Of(KernelTable& table) {`,
    ...entries,
    '}',
    '',
    '}  // namespace DRMAS_ISA',
    '}  // namespace drmas',
  ]);
}

/** A parameter as WebAssembly passes it: structs number by number. */
const wasmParameters = (parameter: Parameter, version: string): string[] =>
  parameter.kind === 'heads'
    ? HeadsFields.map((field) => `int ${field}`)
    : parameter.kind === 'adamw'
      ? AdamWFields.map((field) => `double ${field}`)
      : [cppParameter(parameter, version)];

const wasmArgument = (parameter: Parameter): string =>
  parameter.kind === 'heads'
    ? `{${HeadsFields.join(', ')}}`
    : parameter.kind === 'adamw'
      ? `{${AdamWFields.join(', ')}}`
      : parameter.name;

/** native/generated/wasm-exports.h: one exported function a version of a kernel. */
export function wasmExports(): string {
  const functions = everyKernel.flatMap((kernel) =>
    versionsOf(kernel).map((version) => {
      const parameters = kernel.parameters.flatMap((parameter) => wasmParameters(parameter, version));
      const values = kernel.parameters.map(wasmArgument);
      const call = `kernels::${kernel.name}(`;
      return [
        `DRMAS_EXPORT(${version})`,
        wrapped(`${returnType(kernel)} ${version}(`, parameters, ') {'),
        wrapped(
          `  ${kernel.returns === 'nothing' ? '' : 'return '}${call}`,
          takesPool(kernel) ? ['pool', ...values] : values,
          ');',
        ),
        '}',
        '',
      ].join('\n');
    }),
  );
  return file([
    '// The kernels as WebAssembly exports them. wasm.cpp includes this where `pool` and `kernels` are.',
    '#pragma once',
    ...functions.join('\n').trimEnd().split('\n'),
  ]);
}

// ---- the native addon ----------------------------------------------------------------------------------------------

/** How many arguments JavaScript passes for a parameter. */
const places = (parameter: Parameter) =>
  parameter.kind === 'heads' ? HeadsFields.length : parameter.kind === 'adamw' ? AdamWFields.length : 1;

/** A length of the manifest as C++ computes it, in double precision. */
const cppExpression = (kernel: Kernel, expression: string): string =>
  rewriteCalls(expression, (name, values) => {
    if (isSizeFunction(name)) return `double(a.table().${name}(${values}))`;
    if (name === 'max') return `std::max(${values})`;
    if (name === 'indexed' || name === 'last') return `a.${name}(${values}, ${countOf(kernel, values)})`;
    if (name === 'qkvWidth') return `qkvWidth(${values})`;
    throw new Error(`${kernel.name}: ${name} is no function of lengths`);
  });

/** The C++ type of a buffer's elements, and the method that reads it. */
const READERS = { f32: ['float', 'floats'], bf16: ['Bfloat16', 'bfloat16'], i32: ['int32_t', 'integers'] } as const;

/** The statement that reads and checks the argument in place `i`. */
function readArgument(kernel: Kernel, parameter: Parameter, i: number, firstWeights: string | undefined): string {
  const { name } = parameter;
  const label = `"${kernel.name}(${name})"`;
  const at = `${i}, ${label}`;
  switch (parameter.kind) {
    case 'size':
      return `  const double ${name} = a.size(${at});`;
    case 'f32':
      return `  const float ${name} = float(a.number(${at}));`;
    case 'bool':
      return `  const bool ${name} = a.flag(${at});`;
    case 'heads':
      return `  const Heads ${name} = a.heads(${at});`;
    case 'adamw':
      return `  const AdamW ${name} = a.adamw(${at});`;
    case 'buffer': {
      const least = cppExpression(kernel, parameter.length);
      const { element, below, readOnly } = parameter;
      if (element === 'offsets') return `  const int32_t* ${name} = a.offsets(${at}, ${least});`;
      if (element === 'i32' && below !== undefined) {
        const limit = below === 'none' ? '' : `, ${cppExpression(kernel, below)}`;
        return `  const int32_t* ${name} = a.indices(${at}, ${least}${limit});`;
      }
      if (element === 'weights') {
        const like = firstWeights === undefined || firstWeights === name ? '' : `, &${firstWeights}`;
        return `  const Weights ${name} = a.weights(${at}, ${least}${like});`;
      }
      const [type, method] = READERS[element];
      return `  ${readOnly ? 'const ' : ''}${type}* ${name} = a.${method}(${at}, ${least});`;
    }
  }
}

/** An argument of the call of a version of a kernel. */
const cppArgument = (parameter: Parameter, version: string): string =>
  parameter.kind === 'size'
    ? `long(${parameter.name})`
    : parameter.kind === 'buffer' && parameter.element === 'weights'
      ? `${parameter.name}.${version.endsWith('Bfloat16') ? 'bfloat16' : 'floats'}()`
      : parameter.name;

/**
 * The addon's method of a kernel: scalars and structs are read first, then indices, then buffers whose lengths use
 * them.
 */
function addonMethod(kernel: Kernel): string {
  let next = 0;
  const placed = kernel.parameters.map((parameter) => {
    const i = next;
    next += places(parameter);
    return { parameter, i };
  });
  const order = ({ parameter }: (typeof placed)[number]) =>
    parameter.kind !== 'buffer' ? 0 : holdsIndices(parameter) ? 1 : 2;
  const firstWeights = buffersOf(kernel).find(({ element }) => element === 'weights')?.name;
  const reads = [0, 1, 2].flatMap((stage) => [
    ...placed
      .filter((each) => order(each) === stage)
      .map(({ parameter, i }) => readArgument(kernel, parameter, i, firstWeights)),
    ...(stage === 0 ? bounds(kernel) : []),
  ]);
  const call = (version: string, indent: string) => {
    const values = kernel.parameters.map((parameter) => cppArgument(parameter, version));
    const head = `${indent}${kernel.returns === 'nothing' ? '' : 'return '}${kernel.returns === 'size' ? 'double(' : ''}`;
    return wrapped(
      `${head}a.table().${version}(`,
      takesPool(kernel) ? ['a.pool()', ...values] : values,
      kernel.returns === 'size' ? '));' : ');',
    );
  };
  const run = kernel.hasBfloat16
    ? [`  if (${firstWeights}.isBfloat16)`, call(`${kernel.name}Bfloat16`, '    '), '  else', call(kernel.name, '    ')]
    : [call(kernel.name, '  ')];
  return [
    `inline ${kernel.returns === 'nothing' ? 'void' : 'double'} ${kernel.name}(Arguments& a) {`,
    ...reads,
    `  if (!a.${buffersOf(kernel).length > 0 ? 'fit' : 'ok'}()) return${kernel.returns === 'nothing' ? '' : ' 0'};`,
    ...run,
    '}',
    '',
  ].join('\n');
}

/** The checks of upper bounds: of scalars, and of the size that a kernel returns. */
function bounds(kernel: Kernel): string[] {
  const sizes = kernel.parameters.flatMap((each) =>
    each.kind === 'size' && each.most !== undefined
      ? [`  a.atMost("${kernel.name}(${each.name})", ${each.name}, ${cppExpression(kernel, each.most)});`]
      : [],
  );
  if (kernel.most === undefined) return sizes;
  return [...sizes, `  a.atMost("${kernel.name}", ${cppExpression(kernel, kernel.most)}, kMostSize);`];
}

/** native/generated/addon.h: every kernel as a method of the addon, which checks its arguments. */
export function addonHeader(): string {
  return file([
    '// Every kernel as a method of the addon: kinds, lengths and indices of its arguments are checked, then it runs.',
    '#pragma once',
    '#include <algorithm>',
    '',
    '#include "../arguments.h"',
    '',
    'namespace drmas {',
    'namespace methods {',
    '',
    ...kernels.map(addonMethod),
    '}  // namespace methods',
    '',
    'constexpr Method kKernelMethods[] = {',
    ...kernels.map(({ name }) => `    {"${name}", method<methods::${name}>},`),
    '};',
    '',
    '}  // namespace drmas',
  ]);
}
