import { messageOf } from '../../errors.js';
import { Blocks } from './blocks.js';
import { Board } from './board.js';
import { instantiate } from './instance.js';
import type { Memory, Module } from './webassembly.js';

/** The size of every thread's stack; kernels need less than a tenth of it. */
export const STACK_BYTES = 262_144;

export interface ThreadSettings {
  readonly module: Module;
  readonly memory: Memory;
  /** The address of the thread's stack; its thread-local variables lie above that. */
  readonly stack: number;
  /** The address of the words of the `Board`. */
  readonly board: number;
}

/** Runs a further thread: it takes part in every kernel until the kernels are disposed of. Needs no Node. */
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
