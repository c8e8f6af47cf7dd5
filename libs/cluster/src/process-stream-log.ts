import { type Clock, ExpiringMap, MAX_STORED_BYTES, processClock } from './expiring-map.js';
import { STREAM_SHARE } from './shares.js';
import { type LoggedFrame, STREAM_LOG_LIMITS, StreamLog, type StreamLogLimits } from './stream-log.js';

interface LoggedStream {
  readonly frames: LoggedFrame[];
  size: number;
}

/** Stream frames in this process's memory: a stream can be resumed at this process only. */
export class ProcessStreamLog extends StreamLog {
  private readonly streams: ExpiringMap<LoggedStream>;
  private readonly limits: Required<StreamLogLimits>;
  private written = 0;

  /**
   * @param maxStreams remembered at once; the one written to longest ago is forgotten first. Default 10,000
   * @param maxBytes of all streams together, in the same way. Default 64 MiB
   * @param share of each owner, whose own streams give way beyond it
   */
  constructor(
    limits: StreamLogLimits = {},
    maxStreams = 10_000,
    now: Clock = processClock,
    maxBytes = MAX_STORED_BYTES,
    share = STREAM_SHARE,
  ) {
    super();
    this.limits = { ...STREAM_LOG_LIMITS, ...limits };
    this.streams = new ExpiringMap(maxStreams, now, maxBytes, share);
  }

  append(stream: string, frame: string, owner?: string): Promise<string> {
    const { maxFrames, maxSize, ttl } = this.limits;
    const log = this.streams.get(stream) ?? { frames: [], size: 0 };
    // One count for all streams: a stream that was forgotten and begun anew never repeats an entry.
    this.written += 1;
    const entry = `${this.written}-0`;
    log.frames.push({ entry, frame });
    log.size += Buffer.byteLength(frame);
    while (log.frames.length > maxFrames || (log.size > maxSize && log.frames.length > 1)) {
      log.size -= Buffer.byteLength(log.frames.shift()?.frame ?? '');
    }
    this.streams.set(stream, log, ttl, { weight: log.size, ...(owner !== undefined && { owner }) });
    return Promise.resolve(entry);
  }

  after(stream: string, entry: string): Promise<readonly LoggedFrame[] | undefined> {
    const frames = this.streams.get(stream)?.frames ?? [];
    const at = frames.findIndex((logged) => logged.entry === entry);
    return Promise.resolve(at < 0 ? undefined : frames.slice(at + 1));
  }

  forget(stream: string): Promise<void> {
    this.streams.delete(stream);
    return Promise.resolve();
  }
}
