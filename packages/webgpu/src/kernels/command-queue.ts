/** Memory and dispatches on a WebGPU device. Needs no Node: a browser's device will do. */
import { BackendError, DeviceError } from '@drmas/engine/errors';
import type { DeviceCounts } from '@drmas/engine/kernels';
import { BindGroups, beginInWindow, WINDOW } from './bind-groups.js';
import type { DeviceMemory } from './device-memory.js';
import type { Shader, WorkgroupCounts } from './shader.js';
import type {
  GpuBindGroupLayout,
  GpuBuffer,
  GpuDevice,
  GpuEncoder,
  GpuError,
  GpuPass,
  GpuPipeline,
} from './webgpu-api.js';

/** Bytes of one submit: the numbers of its dispatches, and the writes in between. */
const UNIFORMS = 1 << 20;
/** A write of more bytes is submitted separately. */
const MOST_WRITTEN = UNIFORMS / 16;
/**
 * The most multiply-adds of a submit, unless one dispatch has more: a quarter of a second on a device of 1 TFLOP/s.
 * Windows takes a device for hung when a submit takes 2 s.
 */
const WORK_OF_A_SUBMIT = 1.25e11;

// Flags of GPUBufferUsage, GPUMapMode and GPUShaderStage, which Node knows only by the package that brings a device.
const MAP_READ = 0x1;
const COPY_SRC = 0x4;
const COPY_DST = 0x8;
const UNIFORM = 0x40;
const STORAGE = 0x80;
const MODE_READ = 0x1;
const COMPUTE = 0x4;

interface Pipeline {
  readonly layout: GpuBindGroupLayout;
  readonly compute: GpuPipeline;
}

/** Dispatches are encoded in the order of the calls and submitted when something is read or written. */
export class CommandQueue {
  readonly #device: GpuDevice;
  readonly #pipelines = new Map<string, Pipeline>();
  readonly #uniforms: GpuBuffer;
  readonly #words = new ArrayBuffer(UNIFORMS);
  readonly #octets = new Uint8Array(this.#words);
  readonly #integers = new Uint32Array(this.#words);
  readonly #floats = new Float32Array(this.#words);
  readonly #groups: BindGroups;
  #used = 0;
  #work = 0;
  #encoder: GpuEncoder | undefined;
  #pass: GpuPass | undefined;
  #failure: BackendError | undefined;
  #dispatches = 0;
  #submits = 0;
  readonly #buffers = new Map<GpuBuffer, number>();
  #bytes = 0;
  #mostBytes = 0;
  #waiting = 0;
  #waitedSince = 0;
  #waited = 0;

  constructor(device: GpuDevice) {
    this.#device = device;
    this.#uniforms = device.createBuffer({ size: UNIFORMS, usage: UNIFORM | COPY_SRC | COPY_DST });
    this.#groups = new BindGroups(device, { buffer: this.#uniforms, offset: 0, size: WINDOW });
    device.onuncapturederror = ({ error }) => this.#fail(errorOf(error));
    void device.lost.then(({ message }) => this.#fail(new DeviceError('lost', `the GPU was lost: ${message}`)));
  }

  get counts(): DeviceCounts {
    return {
      dispatches: this.#dispatches,
      submits: this.#submits,
      bindGroups: this.#groups.created,
      keptBindGroups: this.#groups.kept,
      buffers: this.#buffers.size,
      bytes: this.#bytes,
      mostBytes: this.#mostBytes,
      waited: this.#waited / 1e3,
    };
  }

  /** A zeroed buffer. @throws DeviceError when the device has none as large, or failed */
  allocate(bytes: number): GpuBuffer {
    this.#check();
    const size = Math.max(WINDOW, Math.ceil(bytes / WINDOW) * WINDOW);
    const { maxBufferSize } = this.#device.limits;
    if (size > maxBufferSize)
      throw new DeviceError('memory', `a buffer of ${size} bytes: this GPU has none above ${maxBufferSize}`);
    const buffer = this.#device.createBuffer({ size, usage: STORAGE | COPY_SRC | COPY_DST });
    this.#buffers.set(buffer, size);
    this.#bytes += size;
    this.#mostBytes = Math.max(this.#mostBytes, this.#bytes);
    return buffer;
  }

  /**
   * Gives a buffer back, after all commands encoded before; a second time does nothing. Forgets its bind groups, which
   * would keep its memory.
   */
  free(buffer: GpuBuffer): void {
    const size = this.#buffers.get(buffer);
    if (size === undefined) return;
    this.submit(); // encoded commands still use the buffer
    this.#buffers.delete(buffer);
    this.#bytes -= size;
    this.#groups.forget(buffer);
    buffer.destroy();
  }

  /** Writes numbers from the host, after all commands encoded before. */
  write(to: DeviceMemory, from: Float32Array | Int32Array | Uint16Array): void {
    this.#check();
    if (from.length === 0) return;
    const bytes = new Uint8Array(from.buffer, from.byteOffset, from.byteLength);
    // An odd count of numbers in bfloat16 ends within a word; the rest of the word is unused.
    const size = Math.ceil(bytes.length / 4) * 4;
    const target = to.offset * to.bytesPerNumber;
    if (size <= MOST_WRITTEN) {
      if (this.#used + size > UNIFORMS) this.submit();
      this.#octets.set(bytes, this.#used);
      this.#octets.fill(0, this.#used + bytes.length, this.#used + size);
      this.#endPass().copyBufferToBuffer(this.#uniforms, this.#used, to.buffer, target, size);
      this.#used += Math.ceil(size / WINDOW) * WINDOW;
      return;
    }
    this.submit();
    // Dawn's package for Node ends the process on memory that threads share.
    const asItIs = size === bytes.length && bytes.buffer instanceof ArrayBuffer;
    const words = asItIs ? bytes : new Uint8Array(size);
    if (!asItIs) words.set(bytes);
    this.#device.queue.writeBuffer(to.buffer, target, words);
  }

  /**
   * The bytes of several memories, in one wait for the device. @throws DeviceError when the device was lost, has too
   * little memory, or refused a shader or a command since it was opened
   */
  async read(memories: readonly DeviceMemory[]): Promise<ArrayBuffer[]> {
    this.#check();
    const parts = memories.map((memory) => ({
      buffer: memory.buffer,
      first: memory.offset * memory.bytesPerNumber,
      bytes: Math.ceil((memory.length * memory.bytesPerNumber) / 4) * 4,
    }));
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
    const staging = this.#device.createBuffer({ size: Math.max(4, bytes), usage: MAP_READ | COPY_DST });
    const encoder = this.#endPass();
    let at = 0;
    for (const part of parts) {
      if (part.bytes > 0) encoder.copyBufferToBuffer(part.buffer, part.first, staging, at, part.bytes);
      at += part.bytes;
    }
    this.submit();
    if (this.#waiting++ === 0) this.#waitedSince = performance.now();
    try {
      await staging.mapAsync(MODE_READ);
    } catch (error) {
      this.#fail(new DeviceError('lost', `the GPU gave nothing back: ${String(error)}`));
    }
    if (--this.#waiting === 0) this.#waited += performance.now() - this.#waitedSince;
    this.#check();
    const mapped = staging.getMappedRange();
    let end = 0;
    const copies = parts.map((part) => {
      const begin = end;
      end += part.bytes;
      return mapped.slice(begin, end);
    });
    staging.destroy();
    return copies;
  }

  /**
   * Encodes one dispatch. No two of the memories may share a window, except those that are only read.
   * @param work Its multiply-adds, if they are many
   */
  run(
    shader: Shader,
    numbers: readonly number[],
    memories: readonly DeviceMemory[],
    groups: WorkgroupCounts,
    work = 0,
  ): void {
    const [x, y] = groups;
    if (x === 0 || y === 0) return;
    if (this.#used >= UNIFORMS || (this.#work > 0 && this.#work + work > WORK_OF_A_SUBMIT)) this.submit();
    const { layout, compute } = this.#pipeline(shader);
    const first = this.#used;
    this.#used += WINDOW;
    this.#work += work;
    let word = first / 4;
    for (let i = 0; i < numbers.length; i++, word++) {
      if (shader.floats[i] === true) this.#floats[word] = numbers[i] as number;
      else this.#integers[word] = numbers[i] as number;
    }
    for (const memory of memories) this.#integers[word++] = beginInWindow(memory);
    this.#encoder ??= this.#device.createCommandEncoder();
    this.#pass ??= this.#encoder.beginComputePass();
    this.#pass.setPipeline(compute);
    this.#pass.setBindGroup(0, this.#groups.get(layout, memories), [first]);
    this.#pass.dispatchWorkgroups(x, y);
    this.#dispatches++;
  }

  submit(): void {
    this.#pass?.end();
    this.#pass = undefined;
    if (this.#encoder === undefined) return;
    if (this.#used > 0) this.#device.queue.writeBuffer(this.#uniforms, 0, this.#words, 0, this.#used);
    this.#used = 0;
    this.#work = 0;
    this.#device.queue.submit([this.#encoder.finish()]);
    this.#encoder = undefined;
    this.#submits++;
  }

  /** Releases the device. Later calls fail. */
  destroy(): void {
    this.#failure ??= new BackendError('these kernels were disposed of');
    this.#device.destroy();
  }

  #endPass(): GpuEncoder {
    this.#pass?.end();
    this.#pass = undefined;
    this.#encoder ??= this.#device.createCommandEncoder();
    return this.#encoder;
  }

  /** The first failure counts: later failures are often its consequences. */
  #fail(error: BackendError): void {
    this.#failure ??= error;
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  #pipeline(shader: Shader): Pipeline {
    let pipeline = this.#pipelines.get(shader.name);
    if (pipeline === undefined) {
      pipeline = this.#compile(shader);
      this.#pipelines.set(shader.name, pipeline);
    }
    return pipeline;
  }

  #compile({ name, code, readOnly }: Shader): Pipeline {
    const layout = this.#device.createBindGroupLayout({
      entries: [
        { binding: 0, visibility: COMPUTE, buffer: { type: 'uniform', hasDynamicOffset: true } },
        ...readOnly.map((only, i) => ({
          binding: i + 1,
          visibility: COMPUTE,
          buffer: { type: only ? ('read-only-storage' as const) : ('storage' as const) },
        })),
      ],
    });
    const compute = this.#device.createComputePipeline({
      label: name,
      layout: this.#device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module: this.#device.createShaderModule({ label: name, code }) },
    });
    return { layout, compute };
  }
}

/**
 * Classes of errors are known by name: Node has them only in the package that brings a device. What a compiler says of
 * a shader has many lines, and a run ends with one.
 */
function errorOf(error: GpuError): DeviceError {
  const message = error.message.trim().replaceAll(/\s*\n\s*/g, ' | ');
  if (error.constructor.name === 'GPUOutOfMemoryError')
    return new DeviceError('memory', `the GPU has too little memory: ${message}`);
  return new DeviceError('refused', `the GPU refused a shader or a command: ${message}`);
}
