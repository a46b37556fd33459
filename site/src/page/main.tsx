import { render } from 'preact';
import { App } from './app.js';

const place = document.getElementById('app');
if (place !== null) {
  place.replaceChildren();
  render(<App />, place);
}
