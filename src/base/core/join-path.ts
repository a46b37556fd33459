/** Joins the parts of a path with slashes, which all systems understand; slashes at the ends of parts count once. */
export function joinPath(first: string, ...more: readonly string[]): string {
  return more.reduce((path, part) => `${path.replace(/\/+$/, '')}/${part.replace(/^\/+|\/+$/g, '')}`, first);
}
