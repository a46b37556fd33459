import { type Agent, ArgumentError, agent, assistant, defineTeam, oneOf, user } from 'drmas';
import { z } from 'zod';
import { comebackText, deskPrompt, fixOf, ticketFix, ticketLines } from './world.js';

export interface SupportDeskOptions {
  /** The number of product lines, 2 to 8, each with a specialist; as many as `tickets` has. Default 4. */
  readonly lines?: number;
}

export interface SupportDeskOutcome {
  /** The last fix that was tried. */
  readonly answer: string | undefined;
  readonly mended: boolean;
  /** The line that triage named. */
  readonly routed: string | undefined;
  readonly escalated: boolean;
}

const optionsSchema = z.strictObject({ lines: z.int().min(2).max(ticketLines.length).default(4) });

/**
 * Creates a support desk for `tickets`. Triage names the product line, and a generalist names the usual remedy. If this
 * does not repair the device, the customer comes back, and the specialist of the line that triage named has one try.
 * A specialist can repair only devices of its own line. The course of the episode therefore decides whether a
 * specialist is called, and which one. The team earns 1 for a repaired device. Metrics: `routed`, the share of tickets
 * with the right line; `escalated`; and `specialists`, the share of escalations that succeed.
 *
 * @throws ArgumentError naming the option that is wrong.
 *
 * @example
 * ```ts
 * import { supportDesk } from 'drmas/recipes/desk/team';
 *
 * const team = supportDesk({ lines: 6 });
 * ```
 */
export function supportDesk(options: SupportDeskOptions = {}) {
  const checked = optionsSchema.safeParse(options);
  if (!checked.success) throw new ArgumentError(`supportDesk(...): ${z.prettifyError(checked.error)}`);
  const lines = ticketLines.slice(0, checked.data.lines);
  const sampling = { maxTokens: 2 };
  const clerk = (name: string) => agent({ system: deskPrompt(name), parse: ticketFix, sampling });
  const agents: Readonly<Record<string, Agent<string>> & Record<'triage' | 'generalist', Agent<string>>> = {
    ...Object.fromEntries(lines.map((line) => [line, clerk(line)])),
    triage: agent({ system: deskPrompt('triage'), parse: oneOf(...lines), sampling }),
    generalist: clerk('generalist'),
  };
  return defineTeam({
    name: 'support-desk',
    task: z.object({ ticket: z.string(), line: z.enum(lines), symptom: z.string(), rare: z.number() }),
    agents,
    async play({ task, agents, random }): Promise<SupportDeskOutcome> {
      const { ticket, line } = task;
      const batch = random.chance(task.rare) ? 'rare' : 'common';
      const { value: routed } = await agents.triage(ticket);
      const remedy = await agents.generalist(ticket);
      const fix = fixOf(task, batch);
      if (remedy.value === fix) return { answer: remedy.value, mended: true, routed, escalated: false };
      const specialist = routed && agents[routed];
      if (!specialist) return { answer: remedy.value, mended: false, routed, escalated: false };
      const { value } = await specialist([user(ticket), assistant(remedy.text), user(comebackText(batch))]);
      return { answer: value, mended: value === fix && routed === line, routed, escalated: true };
    },
    reward: ({ outcome }) => ({ mended: outcome.mended }),
    metrics: ({ outcome: { routed, escalated, mended }, task }) => ({
      routed: routed === task.line,
      escalated,
      specialists: escalated ? mended : undefined,
    }),
  });
}
