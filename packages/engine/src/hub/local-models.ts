import { type Clock, Secret, systemClock } from '../host.js';
import { writesDate } from '../model/formats/tokenizer-files.js';
import { strftime } from '../model/jinja/strftime.js';
import type { CheckpointSpec } from '../model/model-spec.js';
import { DATE_VARIABLE } from '../model/tokenizers/named-templates.js';
import { nodeFiles } from '../platform.js';
import { findModel, type ModelDirectoryOptions } from './model-directory.js';

/** Commits of models on hubs, by the names that a recipe gives them, and the date that chat templates write. */
export type Commits = Readonly<Record<string, string>>;

/**
 * Settings with directories in place of hubs' names, in every `{ type: 'checkpoint', path }` that they hold at any
 * depth. Missing models are downloaded. A model that is named several times is looked up once, so that all have the
 * same commit. Chat templates that write the date get one date, which is kept beside the commits: a prompt is the same
 * tomorrow.
 * @param options.commits The commits and the date to take; other names get their revision's newest commit
 * @returns The settings, and the commits and the date that were taken
 * @throws CheckpointError, HubError, the signal's reason, as `modelDirectory` does
 */
export async function withLocalModels<Settings>(
  settings: Settings,
  {
    commits = {},
    clock = systemClock,
    ...options
  }: ModelDirectoryOptions & { readonly commits?: Commits | undefined; readonly clock?: Clock | undefined },
): Promise<{ readonly settings: Settings; readonly commits: Commits }> {
  const models = new Map<string, Awaited<ReturnType<typeof findModel>>>();
  const date = commits[DATE_VARIABLE] ?? strftime('%F', clock.now());
  const taken: Record<string, string> = {};
  const place = async (value: unknown): Promise<unknown> => {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value) || value instanceof Secret) return value; // neither holds models
    if ('type' in value && value.type === 'checkpoint' && 'path' in value && typeof value.path === 'string') {
      const { path } = value;
      const model = models.get(path) ?? (await findModel(path, { ...options, commit: commits[path] }));
      models.set(path, model);
      const { directory, commit } = model;
      if (commit !== undefined) taken[path] = commit;
      const { chatTemplate, variables = {} } = value as CheckpointSpec;
      const needsDate = !(DATE_VARIABLE in variables) && (await writesDate(nodeFiles, directory, chatTemplate));
      if (!needsDate) return { ...value, path: directory };
      taken[DATE_VARIABLE] = date;
      return { ...value, path: directory, variables: { ...variables, [DATE_VARIABLE]: date } };
    }
    const placed: Record<string, unknown> = {};
    for (const [key, inner] of Object.entries(value)) placed[key] = await place(inner);
    return placed;
  };
  const placed = (await place(settings)) as Settings;
  return { settings: placed, commits: taken };
}
