/**
 * Trackio (github.com/gradio-app/trackio), a dashboard of one's own: version 1 of the HTTP interface that its Python
 * client speaks with `trackio show`, as of 0.43.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { RunError } from '../core/errors.js';
import type { RunEvent } from '../core/events.js';
import { Secret } from '../core/secret.js';
import { measurementsOf } from './measurements.js';
import { recordedRun, recordRun } from './server-record.js';
import { defineTracker } from './tracker-declaration.js';
import { rootOf, settingLeaves, TrackerServer } from './tracker-server.js';

/** The version of the interface, which the server says. */
const SPOKEN = 1;
const MOST_ENTRIES = 500;
/** Names the run on the server, in the run's directory. */
const RECORD = 'trackio.json';

export const trackio = defineTracker({
  name: 'trackio',
  address: 'url',
  description:
    'a dashboard that `trackio show` serves: metrics by step, settings as configuration; its write token stands in the address (`?write_token=`) or in TRACKIO_WRITE_TOKEN',
  open: async (run, address) => {
    const token = new URL(address).searchParams.get('write_token') ?? run.environment.TRACKIO_WRITE_TOKEN;
    const server = new TrackerServer({
      name: 'the Trackio server',
      url: rootOf(address),
      headers: token === undefined ? {} : { 'x-trackio-write-token': token },
      secret: token === undefined ? undefined : new Secret(token),
    });
    await requireVersion(server);
    const runId = (await recordedRun(run.path, RECORD, server.url)) ?? randomUUID().replaceAll('-', '');
    await recordRun(run.path, RECORD, { server: server.url, runId });
    const place = { project: run.recipe, run: run.name, run_id: runId };
    const config = Object.fromEntries(settingLeaves(run.settings));
    const send = async (events: readonly RunEvent[]) => {
      const logs = events.flatMap((event) => entriesOf(event, runId)).map((entry) => ({ ...place, ...entry, config }));
      for (let at = 0; at < logs.length; at += MOST_ENTRIES)
        await server.ask('api/bulk_log', {
          args: [],
          kwargs: { logs: logs.slice(at, at + MOST_ENTRIES), hf_token: null },
        });
    };
    await send(run.events);
    return { name: 'the tracker trackio', event: (event) => send([event]) };
  },
});

/** @throws RunError unless the server speaks the version that is known here */
async function requireVersion(server: TrackerServer): Promise<void> {
  const answer = z
    .object({ version: z.string().optional(), api_version: z.number() })
    .safeParse(await server.ask('version'));
  const spoken = answer.data?.api_version;
  if (spoken !== SPOKEN)
    throw new RunError(
      `the server at ${server.url} is no Trackio server whose HTTP interface has version ${SPOKEN}: ${spoken === undefined ? 'it does not say one' : `it has ${spoken}, of Trackio ${answer.data?.version}`}`,
    );
}

/**
 * An event's measurements as an entry. A server keeps one entry of a `log_id`: what a resumed run says again is not
 * there twice.
 */
function entriesOf(event: RunEvent, runId: string) {
  const measured = measurementsOf(event);
  const step = measured[0]?.step;
  if (step === undefined) return [];
  const parts = [runId, event.type, 'policy' in event ? event.policy : '', 'split' in event ? event.split : '', step];
  return [
    { metrics: Object.fromEntries(measured.map(({ name, value }) => [name, value])), step, log_id: parts.join(':') },
  ];
}
