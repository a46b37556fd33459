import { assistant, type TaskSource, type Trace, user } from 'drmas';
import { checkedOptions, isHeldOut, permutation, type RandomStream, type Split } from 'drmas/tasks';
import { z } from 'zod';
import { fileNames, operations, type ToolboxVersion } from './commands.js';
import { requestText, type ToolboxRequest, toolboxSandbox } from './sandbox.js';

const share = z.number().min(0).max(1);

export const toolboxSettings = z.strictObject({
  drift: share
    .default(0.25)
    .describe('The share of episodes whose sandbox has version 2 of the toolbox, in which every command is renamed.'),
  demonstrations: z
    .strictObject({
      coder: share.default(0.4).describe('The share of demonstrations that show the coder; the rest show the fixer.'),
      removed: share
        .default(0.75)
        .describe("The share of the fixer's demonstrations about a name that was removed; the rest are about slips."),
    })
    .prefault({})
    .describe("The content of the warm start's demonstrations."),
});

/** The options of `toolbox`. */
export type ToolboxOptions = z.input<typeof toolboxSettings>;

export interface ToolboxTask {
  /** An operation on two files: `sort c into f`. */
  readonly request: string;
  /** The probability that an episode finds version 2 installed. */
  readonly drift: number;
}

/** The share of held-out tasks. */
const HELD_OUT_SHARE = 0.15;

/** Every request of a split. Both directions of two files belong to the same split, since exchanging has none. */
function requestsOf(split: Split): [ToolboxRequest, ...ToolboxRequest[]] {
  const requests = operations.flatMap((operation) =>
    fileNames.flatMap((source) =>
      fileNames.filter((target) => target !== source).map((target) => ({ operation, source, target })),
    ),
  );
  const heldOut = ({ operation, source, target }: ToolboxRequest) =>
    isHeldOut([operation.verb, ...[source, target].sort()].join(' '), HELD_OUT_SHARE);
  return requests.filter((request) => heldOut(request) === (split === 'test')) as [ToolboxRequest];
}

const requests = { train: requestsOf('train'), test: requestsOf('test') };

/**
 * Requests for a small toolbox of file commands, such as `sort c into f`. Version 1 calls this command `sort`, version
 * 2 `order`. A team's answer is a command line; `toolboxSandbox` runs it against hidden tests. The team draws the
 * version of an episode: version 2 with the probability `drift`. `trace` demonstrates a coder, who writes for version
 * 1, and a fixer, who sees the request, the failed command line and the message. The demonstrated fixer knows that a
 * name was removed, but not the new name, and takes any name of version 2. It corrects slips rightly.
 *
 * @throws RecipeError naming the setting that is wrong.
 *
 * @example
 * ```ts
 * import { toolbox } from 'drmas/recipes/repair/world';
 *
 * const tasks = toolbox({ drift: 0.1 });
 * ```
 */
export function toolbox(options: ToolboxOptions = {}): TaskSource<ToolboxTask> {
  const settings = checkedOptions('toolbox', toolboxSettings, options);
  return {
    name: 'toolbox',
    settings,
    configure: (changed) => toolbox(changed as ToolboxOptions),
    load: async (split) => {
      const all = requests[split];
      const order = permutation(all.length, 'toolbox', split);
      return {
        name: `toolbox ${split}`,
        size: all.length,
        at: (index) => {
          const request = all[order[index] ?? 0] ?? all[0];
          const text = requestText(request);
          return {
            id: text,
            data: { request: text, drift: settings.drift },
            metadata: { operation: request.operation.verb },
          };
        },
      };
    },
    trace: (random, split) => {
      const request = random.pick(requests[split]);
      if (random.chance(settings.demonstrations.coder)) return coderTrace(request);
      return random.chance(settings.demonstrations.removed)
        ? removedTrace(random, request)
        : slipTrace(random, request);
    },
  };
}

const commandLine = (name: string, { source, target }: ToolboxRequest) => `${name} ${source} ${target}`;
const rightLine = (request: ToolboxRequest, version: ToolboxVersion) =>
  commandLine(request.operation.names[version], request);

const coderTrace = (request: ToolboxRequest): Trace => ({
  agent: 'coder',
  messages: [user(requestText(request))],
  response: rightLine(request, 1),
});

/** A fixer's demonstration: what the sandbox says about the failed line, and the line in its place. */
function fixerTrace(request: ToolboxRequest, version: ToolboxVersion, failed: string, response: string): Trace {
  const text = requestText(request);
  const { message } = toolboxSandbox(text, version).run(failed);
  return { agent: 'fixer', messages: [user(text), assistant(failed), user(message)], response };
}

function removedTrace(random: RandomStream, request: ToolboxRequest): Trace {
  const guess = random.pick(operations).names[2];
  return fixerTrace(request, 2, rightLine(request, 1), commandLine(guess, request));
}

/** A line that failed in version 1, where the demonstrator knows every name: with another name, or another file. */
function slipTrace(random: RandomStream, request: ToolboxRequest): Trace {
  const { operation, source, target } = request;
  const slip = random.chance(0.5)
    ? { ...request, operation: other(random, operations, operation) }
    : random.chance(0.5)
      ? { ...request, source: other(random, fileNames, source) }
      : { ...request, target: other(random, fileNames, target) };
  return fixerTrace(request, 1, rightLine(slip, 1), rightLine(request, 1));
}

/** Draws one of the items, but not `one`. */
function other<T>(random: RandomStream, items: readonly T[], one: T): T {
  return random.pick(items.filter((item) => item !== one) as [T, ...T[]]);
}
