/** The work that a device has received since the start, and the memory that it holds now. */
export interface DeviceCounts {
  readonly dispatches: number;
  readonly submits: number;
  /** Bind groups that were made, and those that are kept for the next dispatch. */
  readonly bindGroups: number;
  readonly keptBindGroups: number;
  /** Buffers that are allocated now, and their bytes. */
  readonly buffers: number;
  readonly bytes: number;
  /** The most bytes that were allocated at a time. */
  readonly mostBytes: number;
  /** Seconds in which somebody waited for the device; the host encodes and computes in the others. */
  readonly waited: number;
}
