/** A figure, which may lead to what it counts. */
export function Tile(props: {
  name: string;
  value: string;
  note?: string | undefined;
  href?: string;
  bad?: boolean;
}) {
  const { name, value, note, href, bad } = props;
  const content = (
    <>
      <span class="tile-name">{name}</span>
      <span class={bad ? 'tile-value bad' : 'tile-value'}>{value}</span>
      {note !== undefined && <span class="tile-note">{note}</span>}
    </>
  );
  return (
    <li>
      {href === undefined ? (
        <div class="tile">{content}</div>
      ) : (
        <a class="tile" href={href}>
          {content}
        </a>
      )}
    </li>
  );
}
