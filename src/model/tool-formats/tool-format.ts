import type { Tool } from '../../core/message.js';

/** A call of a tool as a model wrote it. */
export interface WrittenCall {
  readonly name: string;
  /** The arguments as JSON text. */
  readonly arguments: string;
}

/** A text with its calls of tools taken out. */
export interface TextWithCalls {
  readonly content: string;
  readonly calls: readonly WrittenCall[];
}

/** The way in which a family of models writes calls of tools. */
export interface ToolFormat {
  /** The models that write so, for the documents. */
  readonly families: string;
  /** Whether a chat template that knows tools writes calls so. */
  isOf(template: string): boolean;
  /** Takes the calls out of a response; `undefined` where it begins a call that cannot be read. */
  read(text: string, tools: readonly Tool[]): TextWithCalls | undefined;
  /** A response of this content with these calls: what `read` reads. */
  write(response: TextWithCalls, tools: readonly Tool[]): string;
  /** The beginning of a response that calls this tool; without a name any. It ends where a token may end. */
  opening(name: string | undefined): string;
}
