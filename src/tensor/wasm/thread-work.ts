import { messageOf } from '../../core/errors.js';
import { Blocks } from './blocks.js';
import { Board } from './board.js';
import { instantiate } from './instance.js';
import type { Memory, Module } from './webassembly.js';

/** Of every thread; kernels need less than a tenth of it. */
export const STACK_BYTES = 262_144;

/** What a further thread is sent. */
export interface ThreadSettings {
  readonly module: Module;
  readonly memory: Memory;
  /** Address of its stack, and of its own variables above it. */
  readonly stack: number;
  /** Address of the words of the `Board`. */
  readonly board: number;
}

/** The life of a further thread: blocks, taking part in kernels, until they are disposed of. Needs no Node. */
export function workOn({ module, memory, stack, board: address }: ThreadSettings): void {
  const board = new Board(new Int32Array(memory.buffer, address, Board.LENGTH));
  const wasm = instantiate(module, memory, new Blocks(memory));
  wasm.__wasm_init_tls(stack + STACK_BYTES);
  board.arrive();
  for (;;) {
    wasm.__stack_pointer.value = stack + STACK_BYTES;
    try {
      wasm.work();
      return;
    } catch (error) {
      board.fail(messageOf(error));
      wasm.leave();
    }
  }
}
