import { access, readdir, readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { homeDirectory } from './cache-directory.js';

/** The files and variables that a program needs on Linux to find a GPU. */
export interface VulkanParts {
  /** The path of the loader, or its name if the system's list of libraries has it; undefined if it is missing. */
  readonly loader: string | undefined;
  /** The files that name a driver each, which the loader reads. */
  readonly drivers: readonly string[];
}

const LOADER = 'libvulkan.so.1';
const LIBRARIES = [
  ...['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/lib/x86_64-linux-gnu', '/lib/aarch64-linux-gnu'],
  ...['/usr/lib64', '/usr/lib', '/lib64', '/lib', '/usr/local/lib'],
];

/** Looks for Vulkan's loader and the drivers that it would find, as the environment has them. */
export async function findVulkan(environment: NodeJS.ProcessEnv = process.env): Promise<VulkanParts> {
  const { LD_LIBRARY_PATH = '', XDG_DATA_HOME, VK_DRIVER_FILES, VK_ICD_FILENAMES } = environment;
  const folders = [...LD_LIBRARY_PATH.split(delimiter).filter((folder) => folder !== ''), ...LIBRARIES];
  const [file] = await existing(folders.map((folder) => join(folder, LOADER)));
  const loader = file ?? ((await isListed(LOADER)) ? LOADER : undefined);
  const named = VK_DRIVER_FILES || VK_ICD_FILENAMES || '';
  if (named !== '') return { loader, drivers: await existing(named.split(delimiter)) };
  const data = XDG_DATA_HOME || join(homeDirectory(), '.local', 'share');
  const places = ['/etc', '/usr/local/etc', '/usr/share', '/usr/local/share', data];
  const lists = await Promise.all(places.map((place) => driversIn(join(place, 'vulkan', 'icd.d'))));
  return { loader, drivers: lists.flat() };
}

const isListed = (library: string): Promise<boolean> =>
  readFile('/etc/ld.so.cache', 'latin1').then(
    (list) => list.includes(library),
    () => false,
  );

async function existing(paths: readonly string[]): Promise<string[]> {
  const present = await Promise.all(
    paths.map((path) =>
      access(path).then(
        () => [path],
        () => [],
      ),
    ),
  );
  return present.flat();
}

async function driversIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => name.endsWith('.json')).map((name) => join(folder, name));
}
