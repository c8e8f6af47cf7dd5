import type { ServerResponse } from 'node:http';
import { faultLine } from '#dispatcher';
import type { Exchange } from '../exchange.js';
import type { EdgeParts, RungVerdict } from '../rungs/rung.js';
import type { Download } from './downloads.js';

/**
 * Sends a file as fast as its reader takes it: the next piece is made when the last one has left. A fault in the middle
 * breaks the connection, so that no reader takes a part for the whole.
 * @throws whatever the first piece throws, when nothing was sent yet
 */
export async function sendDownload(
  { response }: Exchange,
  { fileName, mimeType, pieces }: Download,
  running: AbortController,
  { settings, log }: EdgeParts,
): Promise<RungVerdict> {
  const first = await pieces.next();
  if (response.destroyed) {
    await pieces.return();
    return 'gone';
  }
  response.writeHead(200, {
    'Content-Type': mimeType,
    'Content-Disposition': `attachment; filename="${fileName}"`,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  // Whatever a piece waits for, what ends the transfer ends it now.
  running.signal.addEventListener('abort', () => response.destroy(), { once: true });
  if (running.signal.aborted) response.destroy();
  try {
    for (let piece = first; !piece.done; piece = await pieces.next()) {
      if (!(await taken(response, piece.value, settings.downloadPatience))) {
        running.abort('client_disconnect');
        return 'gone';
      }
    }
    if (await ended(response, settings.downloadPatience)) return 'streamed';
    response.destroy();
    return 'gone';
  } catch (fault) {
    if (!running.signal.aborted) log.warn(faultLine('[Downloads] broken off:', fault));
    response.destroy();
    return 'gone';
  } finally {
    await pieces.return();
  }
}

/** Writes, and waits until there is room for more. @returns false when the reader left, or took nothing for too long */
function taken(response: ServerResponse, text: string, patience: number): Promise<boolean> | boolean {
  if (response.destroyed) return false;
  return response.write(text) || happens(response, 'drain', patience);
}

function ended(response: ServerResponse, patience: number): Promise<boolean> {
  const finished = happens(response, 'finish', patience);
  response.end();
  return finished;
}

/** @returns false when the reader left first, or let everybody wait for too long */
function happens(response: ServerResponse, event: 'drain' | 'finish', patience: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isTaken: boolean) => {
      clearTimeout(timer);
      response.off(event, happened).off('close', failed);
      resolve(isTaken);
    };
    const happened = () => settle(true);
    const failed = () => settle(false);
    const timer = setTimeout(failed, patience);
    response.once(event, happened).once('close', failed);
  });
}
