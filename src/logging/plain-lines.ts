import type { LineWriter } from './log-line.js';

/** Lines for people: time, level, who, what, and what it belongs to. */
export function plainLines(write: (text: string) => void): LineWriter {
  return ({ level, context, message, stack, fields }) => {
    const told = Object.entries(fields).map(([name, value]) => ` ${name}=${value}`);
    const where = context === '' ? '' : `[${context}] `;
    const name = level === 'log' ? 'INFO' : level.toUpperCase();
    const after = stack === undefined ? '' : ` | ${stack}`;
    write(`${new Date().toISOString()} ${name.padStart(5)} ${where}${message}${told.join('')}${after}\n`);
  };
}
