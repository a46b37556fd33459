import type { Hono } from 'hono';
import { stream } from 'hono/streaming';
import { z } from 'zod';
import { messageOf } from '../../../base/errors.js';
import { bodyText, parsedBody } from '../../../gateway/dialects.js';
import { type TalkMessage, talkRoles } from '../../../runs/analysis.js';
import type { RunCatalog } from '../run-catalog.js';
import { BusyError, type TalkService } from './talk-service.js';

/** The most bytes of a question, and the most tokens of an answer. */
export const MOST_BYTES = 256e3;
const MOST_TOKENS = 8192;

const questionSchema = z.strictObject({
  run: z.string(),
  agent: z.string(),
  step: z.int().min(0).nullable().default(null),
  messages: z
    .array(z.strictObject({ role: z.enum(talkRoles), content: z.string() }))
    .min(1)
    .max(100),
  temperature: z.number().min(0).max(10).nullable().default(null),
  maxTokens: z.int().min(1).max(MOST_TOKENS).nullable().default(null),
  seed: z.int().min(0).default(0),
});

/**
 * Routes for questions to agents: the agents that answer, a question with its answers as lines of JSON, and its end.
 */
export function addTalkRoutes(app: Hono, catalog: RunCatalog, talk: TalkService): void {
  app.get('/api/talk', async (context) =>
    context.json(await talk.facts(catalog.placeOf(context.req.query('run') ?? ''))),
  );

  app.delete('/api/talk', async (context) => {
    await talk.release();
    return context.body(null, 204);
  });

  app.post('/api/talk', async (context) => {
    const question = questionSchema.parse(parsedBody(await bodyText(context.req.raw, MOST_BYTES)));
    const gone = new AbortController();
    let answers: AsyncGenerator<TalkMessage, void>;
    try {
      answers = talk.ask(catalog.placeOf(question.run), question, gone.signal);
    } catch (error) {
      if (error instanceof BusyError) return context.json({ error: error.message }, 409);
      throw error;
    }
    context.header('content-type', 'application/x-ndjson');
    return stream(context, async (out) => {
      out.onAbort(() => gone.abort(new Error('the page is closed')));
      // Writes do not wait for the page to read: answers are short, and a slow page must not block the next question.
      const write = (message: TalkMessage) => void out.write(`${JSON.stringify(message)}\n`);
      try {
        for await (const message of answers) write(message);
      } catch (error) {
        if (!gone.signal.aborted) write({ type: 'failed', message: messageOf(error) });
      }
    });
  });
}
