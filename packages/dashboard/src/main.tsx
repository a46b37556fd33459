import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { EMBEDDED_ID, type EmbeddedReport } from '../../../src/runs/analysis.js';
import { AblationPage } from './pages/ablation-page.js';
import { ComparePage } from './pages/compare-page.js';
import { RunPage } from './pages/run-page.js';
import { RunsPage } from './pages/runs-page.js';
import { addressOf, go, type Route, useRoute } from './routes.js';
import { LinkContext, SourceContext, useSource } from './run-store.js';
import { embeddedSource } from './source/embedded-source.js';
import { liveSource } from './source/live-source.js';

/** The whole page: the address bar's route, the state of the connection, and the page for the route. */
function App() {
  const route = useRoute();
  const { live } = useSource();
  const [answers, setAnswers] = useState(true);
  useEffect(() => {
    document.title = `${titleOf(route)} - drmas`;
  }, [route]);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !isTyping(event.target)) go({ page: 'runs' });
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
  return (
    <>
      <header class="top">
        <a class="brand" href={addressOf({ page: 'runs' })}>
          drmas
        </a>
        {route.page !== 'runs' && (
          <nav aria-label="where">
            <a href={addressOf({ page: 'runs' })}>runs</a> / <span>{titleOf(route)}</span>
          </nav>
        )}
        {live && (
          <span class={answers ? 'link' : 'link lost'} role="status">
            {answers ? 'live' : 'no answer; trying again'}
          </span>
        )}
      </header>
      <main>
        <LinkContext.Provider value={setAnswers}>
          <Page route={route} />
        </LinkContext.Provider>
      </main>
    </>
  );
}

function Page({ route }: { readonly route: Route }) {
  switch (route.page) {
    case 'runs':
      return <RunsPage />;
    case 'run':
      return <RunPage key={route.name} route={route} />;
    case 'ablation':
      return <AblationPage key={route.name} name={route.name} />;
    case 'compare':
      return <ComparePage key={route.names.join()} names={route.names} />;
  }
}

function titleOf(route: Route): string {
  switch (route.page) {
    case 'runs':
      return 'runs';
    case 'run':
    case 'ablation':
      return route.name;
    case 'compare':
      return `${route.names.length} runs`;
  }
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;

const place = document.getElementById('app');
const embedded = document.getElementById(EMBEDDED_ID)?.textContent;
const source = embedded ? embeddedSource(JSON.parse(embedded) as EmbeddedReport) : liveSource;
if (place !== null) {
  place.replaceChildren();
  render(
    <SourceContext.Provider value={source}>
      <App />
    </SourceContext.Provider>,
    place,
  );
}
