import { toSingular, splitWords } from './name-guesses.js';

/** Words that name a secret, or what a person is known by, without accents. */
const SENSITIVE_WORDS = new Set(
  [
    'pwd pw hash salt otp totp mfa pin puk cvv cvc csc card iban bic swift ssn nino tin ein dob birth birthday born mail',
    'tel mobile cell fax address street postcode zip passport licence license signature jwt cookie session key dsn hook',
    'nonce seed mnemonic pem certificate ip surname religion ethnicity nationality income diagnosis medication illness',
    'lat lng lon latitude longitude coordinate coord gps geolocation',
    // German
    'geheim schluessel schlussel adresse strasse plz telefon handy mobil gehalt lohn einkommen ausweis krankheit diagnose',
    'konfession vorname nachname unterschrift',
    // French
    'mdp jeton cle rue courriel portable naissance salaire revenu nir prenom maladie diagnostic sante',
    // Spanish
    'clave secreto direccion calle telefono movil celular correo nacimiento sueldo salario dni nie nif curp rfc tarjeta',
    'apellido salud enfermedad firma',
    // Portuguese
    'senha segredo endereco rua cep telefone telemovel nascimento cpf cartao saude doenca sobrenome assinatura',
    // Italian
    'segreto indirizzo cellulare nascita stipendio cognome salute malattia',
    // Dutch
    'sleutel adres straat telefoon mobiel loon bsn rijbewijs achternaam voornaam gezondheid ziekte handtekening',
  ].flatMap((line) => line.split(' ')),
);

/** Beginnings of such words, and of words written as one. */
const SENSITIVE_BEGINNINGS = new RegExp(
  `^(${[
    'password|passwd|passwort|passphrase|passcode|secret|token|credential|apikey|accesskey|accesscode|privatekey|webhook',
    'creditcard|cardnumber|accountnumber|email|phone|telephone|birthd|dateofbirth|socialsecurity|taxid|salary|wage|medical',
    'healthr|firstname|lastname|maidenname|costprice|purchaseprice|buyingprice|wholesaleprice|connectionstring|recoverycode',
    'kennwort|geburt|kontonummer|bankverbindung|steuer(nummer|id)|sozialversicherung|kreditkarte|kartennummer|einkaufspreis|geheim',
    'motdepasse|codepostal|datedenaissance|securitesociale|cartebancaire|prixachat|prixdachat|contrasena|codigopostal',
    'fechanacimiento|fechadenacimiento|cuentabancaria|codigopostal|datanascimento|datadenascimento|datadinascita|codicefiscale',
    'partitaiva|cartadicredito|wachtwoord|geboorte|salaris|rekeningnummer|inkoopprijs',
  ].join('|')})`,
);

/** Without accents, as names are often written. */
const plainly = (text: string): string => text.replaceAll('ß', 'ss').normalize('NFD').replace(/\p{M}/gu, '');

/** Whether a column's name says that it holds a secret or what a person is known by. */
export function isSensitiveName(name: string): boolean {
  const words = splitWords(plainly(name));
  return words.some(
    (word, at) =>
      SENSITIVE_WORDS.has(word) ||
      SENSITIVE_WORDS.has(toSingular(word)) ||
      SENSITIVE_BEGINNINGS.test(words.slice(at).join('')),
  );
}

type Test = readonly [looks: string, test: (text: string) => boolean];
const createMatcher = (pattern: RegExp) => (text: string) => pattern.test(text);

/** One such text is enough: it opens something. */
const SECRET_TEXTS: readonly Test[] = [
  ['URIs with a password', createMatcher(/\b[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:[^\s/@]+@/i)],
  [
    'webhooks',
    createMatcher(
      /^https:\/\/(hooks\.(slack|zapier)\.com|[\w.-]*webhook\.office\.com|chat\.googleapis\.com|api\.telegram\.org\/bot|discord(app)?\.com\/api\/webhooks)\b/i,
    ),
  ],
  [
    'URLs with a token',
    createMatcher(
      /^https?:\/\/\S+[?&](access_?token|api_?key|auth|key|secret|sig|signature|token|x-amz-signature)=/i,
    ),
  ],
  ['hashes of passwords', createMatcher(/^\$(2[abxy]?|argon2(id|i|d)|scrypt|pbkdf2[a-z0-9-]*|[156])\$/)],
  [
    'access tokens',
    createMatcher(
      /^(eyJ[\w-]+\.eyJ|gh[pousr]_|github_pat_|glpat-|npm_|(sk|rk|pk)_(live|test)_|sk-[\w-]{16}|whsec_|xox[abpr]-|AKIA[A-Z0-9]{12}|AIza[\w-]{20}|SG\.[\w-]{10})/,
    ),
  ],
  ['private keys', (text) => text.startsWith('-----BEGIN ')],
];

/** Texts that ordinary ones may look like: at least half of the texts of a column. */
const PERSONAL_TEXTS: readonly Test[] = [
  ['e-mail addresses', createMatcher(/^[^\s@]{1,64}@[^\s@]{1,128}\.[^\s@.]{2,24}$/)],
  ['national ids', isNationalId],
  ['bank accounts', isBankAccount],
  ['card numbers', isCardNumber],
  [
    'phone numbers',
    createMatcher(/^(\+\d[\d ()/.-]{6,18}\d|\(\d{3}\) ?\d{3}-\d{4}|0\d{2,4}[ /-]\d[\d -]{4,10})$/),
  ],
  ['coordinates', createMatcher(/^-?\d{1,2}\.\d{3,}\s*[,;]\s*-?\d{1,3}\.\d{3,}$/)],
  ['random tokens', isRandomToken],
];

/** The remainder of a long decimal number. */
const remainder = (digits: string, by: number): number =>
  [...digits].reduce((rest, digit) => (rest * 10 + Number(digit)) % by, 0);

function isBankAccount(text: string): boolean {
  const packed = text.replaceAll(' ', '');
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(packed)) return false;
  const moved = packed.slice(4) + packed.slice(0, 4);
  return (
    remainder(
      moved.replace(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55)),
      97,
    ) === 1
  );
}

function isCardNumber(text: string): boolean {
  const digits = text.replace(/[ -]/g, '');
  if (!/^\d{13,19}$/.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const doubled = Number(digit) * (index % 2 === 1 ? 2 : 1);
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return sum % 10 === 0;
}

/** Of the United States, the United Kingdom, Italy, Brazil, Spain and France. */
function isNationalId(text: string): boolean {
  if (/^\d{3}-\d{2}-\d{4}$/.test(text) || /^\d{3}\.\d{3}\.\d{3}-\d{2}$/.test(text)) return true;
  if (/^[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]$/.test(text)) return true;
  if (/^[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]$/.test(text)) return true;
  const [, digits = '', letter] = /^(\d{8})-?([A-Z])$/.exec(text) ?? [];
  if (letter !== undefined) return 'TRWAGMYFPDXBNJZSQVHLCKE'.charAt(Number(digits) % 23) === letter;
  const [, number = '', check = ''] = /^([12]\d{12}) ?(\d{2})$/.exec(text) ?? [];
  return number !== '' && 97 - remainder(number, 97) === Number(check);
}

const ID = /^([0-9a-f]{24}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Long texts without words, as keys and tokens are, and no ids of documents. */
function isRandomToken(text: string): boolean {
  if (!/^[\w+/=.~-]{20,}$/.test(text) || ID.test(text)) return false;
  if (/^[0-9a-f]{32,}$/i.test(text)) return true;
  const isMixed = [/[a-z]/, /[A-Z]/, /\d/].every((kind) => kind.test(text));
  return isMixed && measureEntropy(text) > 3.5;
}

/** Bits for each character. */
function measureEntropy(text: string): number {
  const counts = new Map<string, number>();
  for (const one of text) counts.set(one, (counts.get(one) ?? 0) + 1);
  return [...counts.values()].reduce((sum, n) => sum - (n / text.length) * Math.log2(n / text.length), 0);
}

/** What texts look like of what agents should not read: one that opens something, or half that tell of people; null: neither. */
export function sensitiveTexts(texts: readonly string[]): string | null {
  const secret = SECRET_TEXTS.find(([, test]) => texts.some(test));
  if (secret) return secret[0];
  const personal = texts.filter((text) => PERSONAL_TEXTS.some(([, test]) => test(text)));
  const [first] = personal;
  if (first === undefined || personal.length * 2 < texts.length) return null;
  return PERSONAL_TEXTS.find(([, test]) => test(first))?.[0] ?? null;
}
