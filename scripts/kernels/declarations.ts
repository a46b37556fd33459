import type { Declaration, KernelEntry, StructKind } from '../../packages/engine/native/manifest/entry.js';
import { FAMILIES } from '../../packages/engine/native/manifest/kernels.js';

/** A parameter of a kernel, read from its declaration in the manifest. */
export type AnyParameter =
  | BufferParameter<'f32' | 'f64' | 'bf16' | 'i32' | 'offsets' | 'weights'>
  | { readonly kind: 'size'; readonly name: string; readonly most: string | undefined }
  | { readonly kind: 'f32' | 'bool'; readonly name: string }
  | { readonly kind: StructKind; readonly name: string; readonly optional: boolean };

/** A parameter of a kernel in C++. */
export type Parameter =
  | Exclude<AnyParameter, { kind: 'buffer' | StructKind }>
  | BufferParameter
  | { readonly kind: 'heads' | 'adamw'; readonly name: string; readonly optional: boolean };

/** A buffer; `weights` are in float32 or in bfloat16. */
export interface BufferParameter<Element = 'f32' | 'bf16' | 'i32' | 'offsets' | 'weights'> {
  readonly kind: 'buffer';
  readonly name: string;
  readonly element: Element;
  /** The least number of elements; offsets have one more. */
  readonly length: string;
  /** The limit that indices stay below, or `none` if they need only be at least 0; undefined for other buffers. */
  readonly below: string | 'none' | undefined;
  readonly readOnly: boolean;
  readonly private: boolean;
  readonly optional: boolean;
}

/** A kernel, with or without C++. */
export interface AnyKernel extends Omit<KernelEntry, 'parameters' | 'returns'> {
  readonly name: string;
  /** The heading of its family. */
  readonly family: string;
  readonly parameters: readonly AnyParameter[];
  readonly returns: 'size' | 'number' | 'nothing';
  /** An upper bound of the size that it returns. */
  readonly most: string | undefined;
  /** Whether there is a second version for matrices in bfloat16. */
  readonly hasBfloat16: boolean;
}

/** A kernel with a C++ implementation. */
export interface Kernel extends AnyKernel {
  readonly header: string;
  readonly parameters: readonly Parameter[];
}

const STRUCTS: readonly string[] = ['heads', 'adamw', 'sgd', 'nigt', 'before', 'share'] satisfies StructKind[];
const isStruct = (kind: string): kind is StructKind => STRUCTS.includes(kind);

const BUFFER = /^(const )?(private )?(f32|f64|bf16|i32|offsets|weights)\[(.+)\](?: (?:< (.+)|>= 0))?$/;

/** @throws Error if the declaration cannot be read */
function readParameter(kernel: string, declaration: Declaration): AnyParameter {
  const [label = '', kind = ''] = declaration.split(': ');
  const name = label.replace('?', '');
  const optional = label !== name;
  if (isStruct(kind)) return { kind, name, optional };
  if (kind === 'f32' || kind === 'bool') return { kind, name };
  if (kind === 'size' || kind.startsWith('size <= ')) return { kind: 'size', name, most: kind.slice(8) || undefined };
  const [, readOnly, layout, element, length, below] = BUFFER.exec(kind) ?? [];
  if (element === undefined || length === undefined)
    throw new Error(`${kernel}: '${declaration}' declares no parameter`);
  return {
    kind: 'buffer',
    name,
    element: element as BufferParameter['element'],
    length,
    below: below ?? (kind.endsWith('>= 0') ? 'none' : undefined),
    readOnly: readOnly !== undefined,
    private: layout !== undefined,
    optional,
  };
}

function readKernel(family: string, name: string, entry: KernelEntry): AnyKernel {
  const parameters = entry.parameters.map((declaration) => readParameter(name, declaration));
  const { returns } = entry;
  return {
    ...entry,
    name,
    family,
    parameters,
    returns: returns === undefined ? 'nothing' : returns === 'number' ? 'number' : 'size',
    most: returns?.startsWith('size <= ') ? returns.slice(8) : undefined,
    hasBfloat16: parameters.some((each) => each.kind === 'buffer' && each.element === 'weights'),
  };
}

/** All kernels, in the manifest's order. */
export const allKernels: readonly AnyKernel[] = Object.entries(FAMILIES).flatMap(([family, entries]) =>
  Object.entries<KernelEntry>(entries).map(([name, entry]) => readKernel(family, name, entry)),
);

/** The kernels that have a C++ implementation. */
export const kernels: readonly Kernel[] = allKernels.filter((kernel): kernel is Kernel => 'header' in kernel);

/** The kernels in C++ that every set of kernels on the processor has. */
export const everyKernel = kernels.filter(({ only }) => only === undefined || only === 'processor');

export const buffersOf = ({ parameters }: Kernel): BufferParameter[] =>
  parameters.filter((each) => each.kind === 'buffer');

/** Whether the contents of a buffer are checked, which happens before lengths are computed from them. */
export const holdsIndices = ({ element }: BufferParameter): boolean => element === 'i32' || element === 'offsets';

/** The names of the versions of a kernel: for matrices in float32 and in bfloat16. */
export const versionsOf = ({ name, hasBfloat16 }: Kernel): string[] =>
  hasBfloat16 ? [name, `${name}Bfloat16`] : [name];

/** Kernels that return a size may be called in the manifest's expressions. */
const sizeFunctions = kernels.filter(({ returns }) => returns === 'size').map(({ name }) => name);

/** An expression of the manifest with its calls rewritten: `rewrite` gets a function's name and its arguments. */
export function rewriteCalls(expression: string, rewrite: (name: string, values: string) => string): string {
  return expression.replace(/\b(\w+)\(([^()]*)\)/g, (_, name: string, values: string) => rewrite(name, values));
}

export const isSizeFunction = (name: string): boolean => sizeFunctions.some((each) => each === name);

/** The object that a kernel which returns a size takes in TypeScript, from its arguments by position. */
export function objectOf(name: string, values: string): string {
  const parameters = kernels.find((each) => each.name === name)?.parameters ?? [];
  const given = values.split(',').map((value) => value.trim());
  const members = parameters.map((each, i) => (each.name === given[i] ? each.name : `${each.name}: ${given[i]}`));
  return `{ ${members.join(', ')} }`;
}

/** The number of elements that `indexed` and `last` read of a buffer. */
export function countOf(kernel: Kernel, buffer: string): string {
  const parameter = buffersOf(kernel).find(({ name }) => name === buffer);
  if (parameter === undefined) throw new Error(`${kernel.name}: there is no buffer ${buffer}`);
  return parameter.length;
}

/** The comment at the head of a generated file. */
export const GENERATED = 'Generated by scripts/generate-kernels.ts from native/manifest: npm run generate';
