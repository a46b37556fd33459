/** Downloads an adapter: a server's saved weights as the files that PEFT reads. */

import type { AdapterSettings } from '@drmas/engine/contract';
import { BackendError, messageOf } from '@drmas/engine/errors';
import type { Secret } from '@drmas/engine/host';
import { readArchive, webRequest } from '@drmas/engine/platform';
import { RemoteModel } from './remote-model.js';
import type { SavedPolicy } from './saved-policy.js';
import { savedAnswer } from './wire/answers.js';
import { apiRoot, defaultTiming } from './wire/http.js';
import { TinkerClient } from './wire/tinker-client.js';
import { isKind } from './wire/tinker-failure.js';

/** More bytes than any adapter of a model that servers train today. */
const LARGEST_ARCHIVE_BYTES = 2e9;
const LONGEST_DOWNLOAD_MS = 3_600_000;

const ADAPTER_FILES = ['adapter_config.json', 'adapter_model.safetensors'] as const;

export interface DownloadOptions {
  readonly apiKey: Secret | undefined;
  readonly adapter: Pick<AdapterSettings, 'targets'>;
}

/**
 * Makes the server load the weights into a new model and save a snapshot of it as an archive, and downloads the
 * archive.
 * @throws BackendError with the address of the weights if the server has no downloads, or has lost the weights
 */
export async function downloadAdapter(
  saved: SavedPolicy,
  { apiKey, adapter }: DownloadOptions,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const client = new TinkerClient({ url: saved.url, apiKey, timing: defaultTiming });
  let model: RemoteModel | undefined;
  try {
    model = await RemoteModel.create({
      client,
      name: 'export',
      spec: {
        baseModel: saved.baseModel,
        rank: saved.rank,
        seed: 0,
        attention: adapter.targets.includes('q'),
        feedForward: adapter.targets.includes('gate'),
      },
    });
    await model.replace(saved, { optimizer: false });
    const snapshot = await model.submit('save_weights_for_sampler', { path: 'export' }, { repeatable: false });
    const { path } = await snapshot.result(savedAnswer);
    const files = readArchive(await archiveOf(saved.url, path ?? '', apiKey));
    for (const name of ADAPTER_FILES)
      if (!files.has(name)) throw new BackendError(`the archive of ${path} lacks ${name}`);
    return files;
  } catch (error) {
    if (!isKind(error, 'lost', 'refused', 'unreachable', 'busy', 'failed') && !(error instanceof BackendError))
      throw error;
    throw new BackendError(
      `the weights are ${saved.path} on the server at ${saved.url}, and could not be downloaded: ${messageOf(error)}`,
    );
  } finally {
    await model?.unload();
    client.close();
  }
}

/**
 * Downloads the archive of `tinker://MODEL/NAME` or `tinker://MODEL/sampler_weights/NAME`. The key goes only to the
 * server. If the archive is on another host, the request to that host has no key.
 */
async function archiveOf(url: string, path: string, apiKey: Secret | undefined): Promise<Uint8Array> {
  const [, run, checkpoint] = /^tinker:\/\/([\w:-]+)\/([\w/-]+)$/.exec(path) ?? [];
  if (run === undefined || checkpoint === undefined)
    throw new BackendError(`the server named a snapshot "${path}", expected tinker://MODEL/NAME`);
  const headers = apiKey === undefined ? {} : { 'x-api-key': apiKey.reveal() };
  const from = `${apiRoot(url)}/training_runs/${run}/checkpoints/${checkpoint}/archive`;
  const limits = {
    signal: new AbortController().signal,
    timeoutMs: LONGEST_DOWNLOAD_MS,
    mostBytes: LARGEST_ARCHIVE_BYTES,
  };
  const answer = await webRequest(from, { headers, ...limits, elsewhere: 'without-headers' });
  if (!answer.ok) throw new BackendError(`${from} answered ${answer.status}`);
  return answer.bytes;
}
