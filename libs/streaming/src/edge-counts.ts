/** What goes on at an edge right now, and what went wrong since its start. */
export class EdgeCounts {
  /** Calls whose client takes a stream; one that its client left counts until it ends. */
  dispatchers = 0;
  /** Streams that stay open by themselves. */
  listeningStreams = 0;
  /** Files that are being sent. */
  downloads = 0;
  /** Calls that still ran when their client left, since the start. */
  abandonedDispatchers = 0;
}
