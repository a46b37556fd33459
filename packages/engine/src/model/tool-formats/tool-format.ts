import type { Tool } from '../../nouns.js';

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

export interface ToolFormat {
  /** The models that write so, for the documents. */
  readonly families: string;
  /** Whether a chat template that knows tools writes calls so. */
  isOf(template: string): boolean;
  /** Takes the calls out of a response; undefined if it begins a call that cannot be read. */
  read(text: string, tools: readonly Tool[]): TextWithCalls | undefined;
  /** The text of a response with this content and these calls. It is the inverse of `read`. */
  write(response: TextWithCalls, tools: readonly Tool[]): string;
  /** The beginning of a response that calls this tool, or any tool without a name. It ends at a token's boundary. */
  opening(name: string | undefined): string;
}
