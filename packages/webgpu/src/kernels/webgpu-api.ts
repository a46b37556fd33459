/**
 * The parts of WebGPU (https://www.w3.org/TR/webgpu) that drmas uses, with their names. Declared here, because neither
 * Node's types nor TypeScript's language library have them, and users who compile against drmas need no package for it.
 */

export interface Gpu {
  requestAdapter(options: { readonly powerPreference: PowerPreference }): Promise<GpuAdapter | null>;
}

export type PowerPreference = 'high-performance' | 'low-power';

interface GpuLimits {
  readonly maxBufferSize: number;
  readonly maxStorageBufferBindingSize: number;
}

interface GpuAdapter {
  readonly info: GpuAdapterInfo;
  readonly features: ReadonlySet<string>;
  readonly limits: GpuLimits;
  requestDevice(wanted: { readonly requiredLimits: GpuLimits }): Promise<GpuDevice>;
}

export interface GpuAdapterInfo {
  readonly vendor: string;
  readonly architecture: string;
  readonly device: string;
  readonly description: string;
}

export interface GpuDevice {
  readonly limits: GpuLimits;
  readonly queue: GpuQueue;
  readonly lost: Promise<{ readonly message: string }>;
  onuncapturederror: ((event: { readonly error: GpuError }) => void) | null;
  createBuffer(wanted: { readonly size: number; readonly usage: number }): GpuBuffer;
  createBindGroupLayout(wanted: { readonly entries: readonly GpuLayoutEntry[] }): GpuBindGroupLayout;
  createBindGroup(wanted: {
    readonly layout: GpuBindGroupLayout;
    readonly entries: readonly GpuBindGroupEntry[];
  }): GpuBindGroup;
  createPipelineLayout(wanted: { readonly bindGroupLayouts: readonly GpuBindGroupLayout[] }): object;
  createShaderModule(wanted: { readonly label: string; readonly code: string }): object;
  createComputePipeline(wanted: {
    readonly label: string;
    readonly layout: object;
    readonly compute: { readonly module: object };
  }): GpuPipeline;
  createCommandEncoder(): GpuEncoder;
  destroy(): void;
}

/** The name of its class tells the kind: GPUOutOfMemoryError, GPUValidationError or GPUInternalError. */
export interface GpuError {
  readonly message: string;
}

export interface GpuBuffer {
  mapAsync(mode: number): Promise<void>;
  getMappedRange(): ArrayBuffer;
  destroy(): void;
}

interface GpuQueue {
  writeBuffer(to: GpuBuffer, offset: number, data: ArrayBuffer | Uint8Array, first?: number, bytes?: number): void;
  submit(commands: readonly object[]): void;
}

interface GpuLayoutEntry {
  readonly binding: number;
  readonly visibility: number;
  readonly buffer: {
    readonly type: 'uniform' | 'storage' | 'read-only-storage';
    readonly hasDynamicOffset?: boolean;
  };
}

/** Bytes of a buffer. */
export interface GpuWindow {
  readonly buffer: GpuBuffer;
  readonly offset: number;
  readonly size: number;
}

export interface GpuBindGroupEntry {
  readonly binding: number;
  readonly resource: GpuWindow;
}

// Opaque objects of the device. Only their types differ.
export interface GpuBindGroupLayout {
  readonly __brand?: 'bind group layout';
}
export interface GpuBindGroup {
  readonly __brand?: 'bind group';
}
export interface GpuPipeline {
  readonly __brand?: 'compute pipeline';
}

export interface GpuEncoder {
  beginComputePass(): GpuPass;
  copyBufferToBuffer(from: GpuBuffer, first: number, to: GpuBuffer, at: number, bytes: number): void;
  finish(): object;
}

export interface GpuPass {
  setPipeline(pipeline: GpuPipeline): void;
  setBindGroup(index: 0, group: GpuBindGroup, offsets: readonly number[]): void;
  dispatchWorkgroups(x: number, y: number): void;
  end(): void;
}
