import { render } from 'preact';
import { App, applyTheme } from './app.js';
import { protectText } from './shown-text.js';

protectText();
applyTheme();
const root = document.getElementById('console');
if (root) render(<App />, root);
