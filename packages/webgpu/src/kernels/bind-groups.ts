import type { DeviceMemory } from './device-memory.js';
import type {
  GpuBindGroup,
  GpuBindGroupEntry,
  GpuBindGroupLayout,
  GpuBuffer,
  GpuDevice,
  GpuWindow,
} from './webgpu-api.js';

/** Bindings begin and end at multiples of this many bytes, the largest that a device may ask for. */
export const WINDOW = 256;
const MOST_GROUPS = 20_000;
/** Windows of a buffer: more than 4 GiB have. */
const WINDOWS = 2 ** 25;

interface Level {
  readonly below: Map<number, Level>;
  group?: GpuBindGroup;
}

/**
 * The bind groups that were made, by layout and windows. Making one takes longer than all else about a dispatch
 * (docs/lab-notes/2026-11.md), and a decoder's dispatches come with the same windows again and again.
 */
export class BindGroups {
  readonly #device: GpuDevice;
  readonly #uniforms: GpuWindow;
  readonly #numbers = new WeakMap<GpuBuffer, number>();
  readonly #roots = new Map<GpuBindGroupLayout, Level>();
  #next = 0;
  #kept = 0;
  #created = 0;

  constructor(device: GpuDevice, uniforms: GpuWindow) {
    this.#device = device;
    this.#uniforms = uniforms;
  }

  /** Groups that were made since the start. */
  get created(): number {
    return this.#created;
  }

  /** Groups that are kept for the next dispatch. */
  get kept(): number {
    return this.#kept;
  }

  get(layout: GpuBindGroupLayout, memories: readonly DeviceMemory[]): GpuBindGroup {
    let level = below(this.#roots, layout);
    for (const memory of memories) {
      const first = firstWindow(memory);
      level = below(below(level.below, this.#number(memory.buffer) * WINDOWS + first).below, lastWindow(memory));
    }
    if (level.group === undefined) {
      if (this.#kept++ >= MOST_GROUPS) {
        this.#roots.clear();
        this.#kept = 0;
        return this.get(layout, memories);
      }
      this.#created++;
      level.group = this.#device.createBindGroup({ layout, entries: this.#entries(memories) });
    }
    return level.group;
  }

  /** Forgets the groups that bind a buffer: they keep its memory on the device. */
  forget(buffer: GpuBuffer): void {
    const number = this.#numbers.get(buffer);
    if (number === undefined) return;
    for (const root of this.#roots.values()) this.#kept -= forgetBelow(root, number);
    this.#numbers.delete(buffer);
  }

  #entries(memories: readonly DeviceMemory[]): GpuBindGroupEntry[] {
    const windows = memories.map((memory, i) => {
      const offset = firstWindow(memory) * WINDOW;
      const size = Math.max(WINDOW, lastWindow(memory) * WINDOW - offset);
      return { binding: i + 1, resource: { buffer: memory.buffer, offset, size } };
    });
    return [{ binding: 0, resource: this.#uniforms }, ...windows];
  }

  #number(buffer: GpuBuffer): number {
    let number = this.#numbers.get(buffer);
    if (number === undefined) {
      number = this.#next++;
      this.#numbers.set(buffer, number);
    }
    return number;
  }
}

const firstWindow = ({ offset, bytesPerNumber }: DeviceMemory) => Math.floor((offset * bytesPerNumber) / WINDOW);
const lastWindow = ({ offset, length, bytesPerNumber }: DeviceMemory) =>
  Math.ceil(((offset + length) * bytesPerNumber) / WINDOW);

/** Whether two memories share a window, so that no dispatch may bind both and write to one of them. */
export const shareWindow = (a: DeviceMemory, b: DeviceMemory): boolean =>
  a.buffer === b.buffer && firstWindow(a) < lastWindow(b) && firstWindow(b) < lastWindow(a);

function below<Key>(map: Map<Key, Level>, key: Key): Level {
  let level = map.get(key);
  if (level === undefined) {
    level = { below: new Map() };
    map.set(key, level);
  }
  return level;
}

/** Removes the branches that begin with windows of a buffer; a window's two ends have a level each. */
function forgetBelow(level: Level, buffer: number): number {
  let forgotten = 0;
  for (const [key, ends] of level.below) {
    const gone = Math.floor(key / WINDOWS) === buffer;
    for (const next of ends.below.values()) forgotten += gone ? groupsIn(next) : forgetBelow(next, buffer);
    if (gone) level.below.delete(key);
  }
  return forgotten;
}

function groupsIn({ below, group }: Level): number {
  let count = group === undefined ? 0 : 1;
  for (const next of below.values()) count += groupsIn(next);
  return count;
}

/** The offset of a memory in its window, in numbers. */
export const beginInWindow = ({ offset, bytesPerNumber }: DeviceMemory): number => offset % (WINDOW / bytesPerNumber);
