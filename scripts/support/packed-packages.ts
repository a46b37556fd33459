/** The packages of this repository that ship, as npm would publish them. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LIBRARIES, type Library } from './libraries.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

export type Tarballs = Readonly<Record<Library | 'drmas', string>>;

/**
 * Packs what is built.
 * @returns The path of each package's tarball, in a new folder of `place`
 */
export function packAll(place: string): Tarballs {
  const pack = (folder: string) => {
    const to = mkdtempSync(join(place, 'packed-'));
    execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', to], {
      cwd: join(root, folder),
    });
    const [tarball = ''] = readdirSync(to);
    return join(to, tarball);
  };
  const libraries = Object.entries(LIBRARIES).map(([name, folder]) => [name, pack(folder)] as const);
  return { drmas: pack('.'), ...(Object.fromEntries(libraries) as Record<Library, string>) };
}

/** Unpacks the packages into a folder `node_modules`, without the packages that they need. */
export function unpackInto(modules: string, tarballs: Tarballs): void {
  for (const [name, tarball] of Object.entries(tarballs)) {
    const folder = join(modules, name);
    mkdirSync(folder, { recursive: true });
    execFileSync('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1']);
  }
}
