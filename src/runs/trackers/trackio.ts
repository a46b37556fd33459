/**
 * Trackio (github.com/gradio-app/trackio), a dashboard that the user hosts: version 1 of the HTTP interface between its
 * Python client and `trackio show`, as of 0.43.
 */
import { randomUUID } from 'node:crypto';
import { RunError } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { defineTracker, Secret } from '@drmas/engine/host';
import { z } from 'zod';
import { measurementsOf } from './measurements.js';
import { recordedRun, recordRun, rootOf, settingLeaves, TrackerServer } from './tracker-server.js';

/** The version of the interface, as the server reports it. */
const SPOKEN = 1;
const MOST_ENTRIES = 500;
/** The file in the run's directory that names the run on the server. */
const RECORD = 'trackio.json';

export const trackio = defineTracker({
  name: 'trackio',
  address: 'url',
  description:
    'a dashboard that `trackio show` serves: metrics by step, settings as configuration; its write token is in the address (`?write_token=`) or in TRACKIO_WRITE_TOKEN',
  open: async (run, address) => {
    const token = new URL(address).searchParams.get('write_token') ?? run.environment.TRACKIO_WRITE_TOKEN;
    const server = new TrackerServer({
      name: 'the Trackio server',
      url: rootOf(address),
      headers: token === undefined ? {} : { 'x-trackio-write-token': token },
      secret: token === undefined ? undefined : new Secret(token),
    });
    await requireVersion(server);
    const runId = (await recordedRun(run, RECORD, server.url)) ?? randomUUID().replaceAll('-', '');
    await recordRun(run, RECORD, { server: server.url, runId });
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

/** @throws RunError if the server has another version of the interface */
async function requireVersion(server: TrackerServer): Promise<void> {
  const answer = z
    .object({ version: z.string().optional(), api_version: z.number() })
    .safeParse(await server.ask('version'));
  const spoken = answer.data?.api_version;
  if (spoken !== SPOKEN)
    throw new RunError(
      `the server at ${server.url} is no Trackio server with version ${SPOKEN} of the HTTP interface: ${spoken === undefined ? 'it reports no version' : `it has ${spoken}, of Trackio ${answer.data?.version}`}`,
    );
}

/**
 * An event's measurements as an entry. A server keeps one entry per `log_id`, so an entry that a resumed run sends
 * again is not duplicated.
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
