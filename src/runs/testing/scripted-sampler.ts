import type { GenerateRequest, Generation, PlayableHandle } from '@drmas/engine/contract';
import type { Tokenizer } from '@drmas/engine/nouns';
import { bytesTokenizer } from '@drmas/engine/tokens';

/** A request as a script sees it. */
export interface ScriptedCall {
  readonly policy: string;
  /** The prompt as text. */
  readonly prompt: string;
  readonly request: GenerateRequest;
  /** Position among all requests, in the order in which they arrived. */
  readonly index: number;
  readonly signal: AbortSignal | undefined;
}

/** Gives the response to a request: a text, or token ids. If it throws, the request fails with that error. */
export type Script = (call: ScriptedCall) => string | number[] | Promise<string | number[]>;

/** A sampler without a model, which remembers its requests. */
export interface ScriptedSampler {
  readonly calls: readonly ScriptedCall[];
  /** The policy of this name, as a run plays it. @param context Longest prompt + response in tokens; default 4096 */
  policy(name: string, context?: number): PlayableHandle;
}

/** A sampler with the responses of a script. Texts end with the request's stop token; every log-prob is -1. */
export function scriptedSampler(script: Script, tokenizer: Tokenizer = bytesTokenizer()): ScriptedSampler {
  const calls: ScriptedCall[] = [];
  const generate = async (policy: string, request: GenerateRequest, signal?: AbortSignal): Promise<Generation> => {
    const prompt = tokenizer.decode(request.prompt);
    const call = { policy, prompt, request, index: calls.length, signal };
    calls.push(call);
    const response = await script(call);
    const tokens = typeof response === 'string' ? [...tokenizer.encode(response), ...request.stopTokens] : response;
    const finishReason = request.stopTokens.includes(tokens.at(-1) ?? -1) ? 'stop' : 'length';
    return { tokens, logprobs: tokens.map(() => -1), finishReason, policyVersion: 3 };
  };
  return {
    calls,
    policy: (name, context = 4096) => ({
      tokenizer,
      context,
      async generate(request, signal, onTokens) {
        const generation = await generate(name, request, signal);
        for (const token of generation.tokens) onTokens?.([token]);
        return generation;
      },
    }),
  };
}
