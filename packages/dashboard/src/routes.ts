import { useEffect, useState } from 'preact/hooks';

export const tabs = ['overview', 'agents', 'episodes', 'talk', 'tables', 'recipe'] as const;
export type Tab = (typeof tabs)[number];

export type Route =
  | { readonly page: 'runs' }
  | { readonly page: 'run'; readonly name: string; readonly tab: Tab; readonly query: Readonly<Record<string, string>> }
  | { readonly page: 'compare'; readonly names: readonly string[] }
  | { readonly page: 'ablation'; readonly name: string };

/** The address of a route, behind the `#`. */
export function addressOf(route: Route): string {
  switch (route.page) {
    case 'runs':
      return '#/';
    case 'run': {
      const query = new URLSearchParams(route.query).toString();
      return `#/run/${encodeURIComponent(route.name)}/${route.tab}${query === '' ? '' : `?${query}`}`;
    }
    case 'ablation':
      return `#/ablation/${encodeURIComponent(route.name)}`;
    case 'compare':
      return `#/compare/${route.names.map(encodeURIComponent).join('/')}`;
  }
}

export const runAddress = (name: string, tab: Tab = 'overview', query: Readonly<Record<string, string>> = {}) =>
  addressOf({ page: 'run', name, tab, query });

/** The route of an address; the list of runs if the address is unknown. */
function routeOf(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [page, ...rest] = path.split('/');
  const names = rest.map(decoded).filter((name) => name !== '');
  const [name, second] = names;
  if (page === 'compare' && names.length > 0) return { page, names };
  if (name === undefined) return { page: 'runs' };
  if (page === 'ablation') return { page, name };
  if (page !== 'run') return { page: 'runs' };
  const tab = tabs.find((one) => one === second) ?? 'overview';
  return { page, name, tab, query: Object.fromEntries(new URLSearchParams(query)) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function go(route: Route): void {
  location.hash = addressOf(route);
}

/** The route of the address, as it changes. */
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const listen = () => setHash(location.hash);
    addEventListener('hashchange', listen);
    return () => removeEventListener('hashchange', listen);
  }, []);
  return routeOf(hash);
}
