import { Secret } from '../host.js';
import { findModel, type ModelDirectoryOptions } from './model-directory.js';

/** Commits of models on hubs, by the names that a recipe gives them. */
export type Commits = Readonly<Record<string, string>>;

/**
 * Settings with directories in place of hubs' names, in every `{ type: 'checkpoint', path }` that they hold at any
 * depth. Missing models are downloaded. A model that is named several times is looked up once, so that all have the
 * same commit.
 * @param options.commits The commits to take, by name; other names get their revision's newest commit
 * @returns The settings, and the commits that were taken
 * @throws CheckpointError, HubError, the signal's reason, as `modelDirectory` does
 */
export async function withLocalModels<Settings>(
  settings: Settings,
  { commits = {}, ...options }: ModelDirectoryOptions & { readonly commits?: Commits | undefined },
): Promise<{ readonly settings: Settings; readonly commits: Commits }> {
  const models = new Map<string, Awaited<ReturnType<typeof findModel>>>();
  const place = async (value: unknown): Promise<unknown> => {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value) || value instanceof Secret) return value; // neither holds models
    if ('type' in value && value.type === 'checkpoint' && 'path' in value && typeof value.path === 'string') {
      const { path } = value;
      const model = models.get(path) ?? (await findModel(path, { ...options, commit: commits[path] }));
      models.set(path, model);
      return { ...value, path: model.directory };
    }
    const placed: Record<string, unknown> = {};
    for (const [key, inner] of Object.entries(value)) placed[key] = await place(inner);
    return placed;
  };
  const placed = (await place(settings)) as Settings;
  const chosen = [...models].flatMap(([name, { commit }]) => (commit === undefined ? [] : [[name, commit] as const]));
  return { settings: placed, commits: Object.fromEntries(chosen) };
}
