import { join } from 'node:path';
import type { RunEvent, Step } from '@drmas/engine/events';
import { trace } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { registeredExporter } from '../../../../test/support/otel-exporter.js';
import { takesTime } from '../../../../test/support/time-and-chance.js';
import { digitTeam, temporaryRoot, tinyDefinition } from '../../../../test/support/tiny-run.js';
import { frozen } from '../../../method/recipe/frozen.js';
import { defineTeam } from '../../../teams/team/team.js';
import { resume, train } from '../../run/api.js';

const root = temporaryRoot();
const track = ['otel'];

afterEach(() => vi.unstubAllEnvs());

const milliseconds = ([seconds, nanos]: readonly [number, number]) => seconds * 1000 + nanos / 1e6;
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** The spans by the first word of their names, and who stands under whom. */
function treeOf(spans: readonly ReadableSpan[]) {
  const named = (word: string) => spans.filter(({ name }) => name.split(' ')[0] === word);
  const under = (parent: ReadableSpan) =>
    spans.filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent.spanContext().spanId);
  const [run] = named('run');
  if (run === undefined) throw new Error('no span of the run');
  return { run, steps: named('step'), episodes: named('invoke_workflow'), named, under };
}

describe('--track otel', () => {
  it('makes a span of the run, of each episode, of its agents and of its turns, with their tokens', async () => {
    const exporter = registeredExporter();
    const { events } = await train(tinyDefinition(), { run: join(root, 'first'), threads: 1, track });
    const { run, steps, episodes, named, under } = treeOf(exporter.getFinishedSpans());

    const learnt = events.filter((event): event is RunEvent & Step => event.type === 'step');
    expect(steps.map(({ attributes }) => attributes['drmas.train.reward.mean'])).toEqual(
      learnt.map(({ reward }) => reward?.mean),
    );
    expect(under(run)).toEqual(steps);
    expect(run.attributes).toMatchObject({ 'drmas.run': 'first', 'drmas.recipe': 'tiny', 'drmas.end': 'completed' });
    expect(run.events.map(({ name }) => name)).toEqual(
      events.map(({ type }) => type).filter((type) => type !== 'step' && type !== 'warmup'),
    );

    const trained = episodes.filter(({ attributes }) => attributes['drmas.phase'] === 'training');
    expect(trained).toHaveLength(sum(learnt.map((step) => step.episodes?.played ?? 0)));
    expect(episodes.length).toBeGreaterThan(trained.length); // those of evaluations
    expect(new Set(episodes.map((span) => span.spanContext().traceId)).size).toBe(episodes.length);
    expect(new Set(episodes.map(({ attributes }) => attributes['gen_ai.conversation.id'])).size).toBe(episodes.length);
    for (const episode of episodes) {
      expect(episode.links[0]?.context).toEqual(run.spanContext());
      const agents = under(episode);
      expect(agents.map(({ name }) => name).sort()).toEqual(['invoke_agent solver', 'invoke_agent verifier']);
      for (const agent of agents) {
        const turns = under(agent);
        const [begin, end] = [milliseconds(agent.startTime), milliseconds(agent.endTime)];
        for (const kind of ['input', 'output'])
          expect(agent.attributes[`gen_ai.usage.${kind}_tokens`]).toBe(
            sum(turns.map(({ attributes }) => Number(attributes[`gen_ai.usage.${kind}_tokens`]))),
          );
        for (const turn of turns) {
          expect(turn.attributes).toMatchObject({
            'gen_ai.operation.name': 'chat',
            'gen_ai.provider.name': 'drmas',
            'gen_ai.request.model': agent.attributes['gen_ai.request.model'],
            'gen_ai.agent.name': agent.attributes['gen_ai.agent.name'],
          });
          expect(milliseconds(turn.startTime)).toBeGreaterThanOrEqual(begin);
          expect(milliseconds(turn.endTime)).toBeGreaterThan(milliseconds(turn.startTime));
          expect(milliseconds(turn.endTime)).toBeLessThanOrEqual(end);
        }
        expect(begin).toBeGreaterThanOrEqual(milliseconds(episode.startTime));
      }
    }
    const chats = named('chat').filter(({ attributes }) =>
      String(attributes['gen_ai.conversation.id']).includes('/training-'),
    );
    const tokens = learnt.flatMap(({ agents }) => Object.values(agents).map((agent) => agent.tokens));
    for (const [kind, field] of [
      ['input', 'read'],
      ['output', 'written'],
    ] as const)
      expect(sum(chats.map(({ attributes }) => Number(attributes[`gen_ai.usage.${kind}_tokens`])))).toBe(
        sum(tokens.map((count) => count?.[field] ?? 0)),
      );
    expect(JSON.stringify(chats.map(({ attributes }) => attributes))).not.toContain('messages');
  });

  it('stands around what the team does itself, shows failures, and texts only where they are asked for', async () => {
    const exporter = registeredExporter();
    vi.stubEnv('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'true');
    const team = defineTeam({
      ...digitTeam,
      async play(given) {
        const looked = trace.getTracer('tool').startSpan('look something up');
        await takesTime(1);
        looked.end();
        if (given.task.question.length % 2 === 1) throw new Error('nothing found');
        return digitTeam.play(given);
      },
    });
    const set = ['training.steps=1', 'evaluation.samples=1'];
    await train(tinyDefinition({ team }), { run: join(root, 'failures'), threads: 1, track, set });
    const { episodes, named, under } = treeOf(exporter.getFinishedSpans());
    for (const episode of episodes) expect(under(episode)[0]?.name).toBe('look something up');
    const failed = episodes.filter(({ status }) => status.message === 'nothing found');
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.length).toBeLessThan(episodes.length);
    expect(failed[0]?.attributes).toMatchObject({ 'error.type': 'error' });
    const turn = named('chat')[0]?.attributes ?? {};
    expect(JSON.parse(String(turn['gen_ai.system_instructions']))[0]).toMatchObject({ type: 'text' });
    expect(JSON.parse(String(turn['gen_ai.input.messages']))[0]).toMatchObject({
      role: 'user',
      parts: [{ type: 'text', content: expect.any(String) }],
    });
    expect(JSON.parse(String(turn['gen_ai.output.messages']))[0]).toMatchObject({ role: 'assistant' });
  });

  it('has no numbers of tokens of a model that reports none, and neither have the events', async () => {
    const exporter = registeredExporter();
    const silent = frozen({ complete: async () => ({ text: '<approve>' }) });
    const set = ['training.steps=1', 'evaluation.samples=1'];
    const { events } = await train(tinyDefinition({ assign: { solver: 'solver', verifier: silent } }), {
      run: join(root, 'silent'),
      threads: 1,
      track,
      set,
    });
    const counts = (name: string) =>
      exporter
        .getFinishedSpans()
        .filter(({ attributes }) => attributes['gen_ai.agent.name'] === name)
        .map(({ attributes }) => ['input', 'output'].map((kind) => typeof attributes[`gen_ai.usage.${kind}_tokens`]));
    expect(new Set(counts('solver').flat())).toEqual(new Set(['number']));
    expect(new Set(counts('verifier').flat())).toEqual(new Set(['undefined']));
    const measured = events.filter((event) => event.type === 'step' || event.type === 'evaluation');
    expect(measured.length).toBeGreaterThan(2);
    for (const { agents } of measured as readonly Pick<Step, 'agents'>[]) {
      expect(agents.solver?.responseTokens).toBeGreaterThan(0);
      expect(agents.verifier).not.toHaveProperty('responseTokens');
    }
  });

  it('ends what an interruption left open, and is a span of its own when the run goes on', {
    tags: 'verify',
  }, async () => {
    const exporter = registeredExporter();
    const run = join(root, 'interrupted');
    const controller = new AbortController();
    const stop = { write: ({ type }: RunEvent) => void (type === 'step' && controller.abort(new Error('enough'))) };
    const begun = train(tinyDefinition(), { run, threads: 1, track, sinks: [stop], signal: controller.signal });
    await expect(begun).rejects.toThrow('enough');
    await resume(run, tinyDefinition(), { threads: 1, track });
    const runs = treeOf(exporter.getFinishedSpans()).named('run');
    expect(runs.map(({ attributes }) => [attributes['drmas.resumed'], attributes['drmas.end']])).toEqual([
      [false, 'stopped'],
      [true, 'completed'],
    ]);
  });

  it('is refused before anything is played where nobody has registered a provider', async () => {
    const begun = train(tinyDefinition(), { run: join(root, 'nobody'), track });
    await expect(begun).rejects.toThrow(/no OpenTelemetry provider is registered/);
  });
});
