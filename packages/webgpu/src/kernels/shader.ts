/** How the shaders are written: names of sizes and of memories, and a body that indexes those by name. */

/** A compute shader; a dispatch passes its numbers and its memories in the order of these lists. */
export interface Shader {
  /** Distinct for distinct code. */
  readonly name: string;
  readonly code: string;
  /** For each number whether it is an f32; the others are u32. */
  readonly floats: readonly boolean[];
  /** For each memory whether it is only read. */
  readonly readOnly: readonly boolean[];
}

export interface ShaderSource {
  readonly name: string;
  /** The numbers read as `p.name`: u32, or f32 if the name ends in `!`. */
  readonly numbers: readonly string[];
  /**
   * `name` (f32) or `name: type`. A type of `bf16` is only read, as `name_at(i)`. Everything else is read and written
   * as `name[i]`, since a dispatch may not read a buffer by one binding and write it by another.
   */
  readonly memories: readonly string[];
  readonly declare?: string;
  readonly threads: string;
  /** Knows `group`, `groups` (vec3u), `local` (vec3u) and `t`, the thread in its group. */
  readonly body: string;
}

/** Bindings begin at multiples of 256 bytes, so each memory also has its offset in its binding. */
export function shader({ name, numbers, memories, declare = '', threads, body }: ShaderSource): Shader {
  const parsed = memories.map((text) => {
    const [label = '', type = 'f32'] = text.split(': ');
    return { label, type, readOnly: type === 'bf16' };
  });
  const floats = numbers.map((text) => text.endsWith('!'));
  const fields = [
    ...numbers.map((text, i) => (floats[i] ? `${text.slice(0, -1)}: f32` : `${text}: u32`)),
    ...parsed.map(({ label }) => `begin_${label}: u32`),
  ];
  const bindings = parsed.map(({ label, type, readOnly }, i) => {
    const access = `@group(0) @binding(${i + 1}) var<storage, ${readOnly ? 'read' : 'read_write'}>`;
    return readOnly ? `${access} ${label}: array<u32>;\n${widened(label)}` : `${access} ${label}: array<${type}>;`;
  });
  const indexed = (text: string) =>
    parsed.reduce(
      (all, { label, readOnly }) =>
        readOnly ? all : all.replaceAll(new RegExp(`\\b${label}\\[`, 'g'), `${label}[p.begin_${label} + `),
      text,
    );
  const code = `struct Parameters { ${fields.join(', ')} };
@group(0) @binding(0) var<uniform> p: Parameters;
${bindings.join('\n')}
${indexed(declare)}
@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_id) local: vec3u, @builtin(local_invocation_index) t: u32) {
${indexed(body)}
}`;
  return { name, code, floats, readOnly: parsed.map(({ readOnly }) => readOnly) };
}

/** A word holds two numbers in bfloat16, the first in the low bits. */
const widened = (label: string) => `fn ${label}_at(i: u32) -> f32 {
  let at = i + p.begin_${label}; let word = ${label}[at >> 1u];
  return bitcast<f32>(select(word << 16u, word & 0xffff0000u, (at & 1u) == 1u));
}`;

/** Rounds to the nearest number in bfloat16, ties to even. Subnormal numbers become 0; NaN stays NaN. */
export const ROUNDING = `
fn rounded_bits(bits: u32) -> u32 {
  let exponent = bits & 0x7f800000u;
  if (exponent == 0u) { return bits & 0x80000000u; }
  if (exponent == 0x7f800000u) { return select(bits & 0xffff0000u, bits | 0x400000u, (bits & 0x7fffffu) != 0u); }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u;
}
fn rounded(x: f32) -> f32 { return bitcast<f32>(rounded_bits(bitcast<u32>(x))); }`;

export type WorkgroupCounts = readonly [x: number, y: number];

/** No dimension may have more than 65,535 groups, so they are laid out in rows. */
export const grid = (groups: number): WorkgroupCounts => [Math.min(groups, 32_768), Math.ceil(groups / 32_768)];

/** Threads of a group that computes number by number. */
const FLAT = 64;
export const perNumber = (count: number): WorkgroupCounts => grid(Math.ceil(count / FLAT));

/** A shader with a thread a number: the body is run for each `e` below `count`, an expression. */
export const numberShader = (source: Omit<ShaderSource, 'threads'> & { readonly count: string }): Shader =>
  shader({
    ...source,
    threads: `${FLAT}`,
    body: `let e = (group.x + group.y * groups.x) * ${FLAT}u + t; if (e >= ${source.count}) { return; }\n${source.body}`,
  });

/** A shader with a group of `threads` a row: the body is run for each `r` below `rows`, an expression. */
export const rowShader = (source: ShaderSource & { readonly rows: string }): Shader =>
  shader({
    ...source,
    body: `let r = group.x + group.y * groups.x; if (r >= ${source.rows}) { return; }\n${source.body}`,
  });

/** The threads of a group, which share the work of a reduction. */
const SHARES = 8;

/**
 * `name(t, v)`: what `join` makes of the values of a group's threads: shares first, then those, each in order: one
 * order, whatever the device. By halves it is a barrier for each half, which takes longer. Needs `scratch`.
 */
export const reduction = (threads: number, name: string, join: (a: string, b: string) => string): string => `
fn ${name}(t: u32, v: f32) -> f32 {
  scratch[t] = v; workgroupBarrier();
  if (t < ${SHARES}u) {
    var s = scratch[t];
    for (var i = t + ${SHARES}u; i < ${threads}u; i += ${SHARES}u) { s = ${join('s', 'scratch[i]')}; }
    shares[t] = s;
  }
  workgroupBarrier();
  if (t == 0u) {
    var s = shares[0];
    for (var i = 1u; i < ${SHARES}u; i++) { s = ${join('s', 'shares[i]')}; }
    scratch[0] = s;
  }
  return workgroupUniformLoad(&scratch[0]);
}`;
export const scratch = (threads: number): string =>
  `var<workgroup> scratch: array<f32, ${threads}>; var<workgroup> shares: array<f32, ${SHARES}>;`;
export const total = (threads: number): string => reduction(threads, 'total', (a, b) => `${a} + ${b}`);
