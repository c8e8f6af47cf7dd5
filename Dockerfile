# glibc and Debian's security updates, without a compiler: no dependency needs musl variants or builds anything here.
# Pin it by digest in your own registry: docker build --build-arg NODE_IMAGE=node:22-bookworm-slim@sha256:…
ARG NODE_IMAGE=node:22-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
# npm compares the packages of the workspace with the lockfile.
COPY libs/embedded-mongo/package.json libs/embedded-mongo/
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY tools/build tools/build
COPY demo demo
COPY src src
COPY libs libs
COPY parley.yaml ./
# The second one starts the demo once, which leaves V8's code cache beside the bundle.
RUN node tools/build/build.mjs && node tools/build/code-cache.mjs

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /build
COPY package.json package-lock.json ./
COPY libs/embedded-mongo/package.json libs/embedded-mongo/
# Optional packages are validators for applications and faster native codecs, 20 MB that nothing here needs. The embedded
# database is part of the bundle; its link would lead nowhere.
RUN npm ci --omit=dev --omit=optional --no-audit --no-fund && rm -rf node_modules/@parley

FROM ${NODE_IMAGE}
# Again, as each stage has arguments of its own: the label names what the image was built on.
ARG NODE_IMAGE
ARG VERSION=1.0.0
LABEL org.opencontainers.image.title="Parley" \
      org.opencontainers.image.description="An MCP server that serves Parse and MongoDB data to AI agents under rules" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.base.name="${NODE_IMAGE}" \
      org.opencontainers.image.documentation="docs/operations/deployment.md"
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3001
WORKDIR /app
COPY --from=dependencies /build/node_modules node_modules
COPY --from=build /build/dist/bundle dist/bundle
COPY --from=build /build/dist/pages dist/pages
COPY --from=build /build/dist/seeds dist/seeds
COPY --from=build /build/dist/parley.schema.json ./
COPY package.json parley.yaml ./
COPY demo demo
# `node` of the base image. Everything above is root's, so the process cannot change what it runs; nor does it write anywhere,
# so the root file system may be read-only.
USER 1000:1000
EXPOSE 3001
# Liveness only: a database that is down is no reason to be restarted. `/ready` is for whoever routes requests.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# No shell in between and no child processes: the service gets SIGTERM itself, and there is nothing for an init to reap.
# Answers live shortly: unbounded, the space for what is new was a fifth of the memory after some thousand calls.
CMD ["node", "--max-semi-space-size=8", "--heap-growing-percent=40", "--v8-pool-size=1", "dist/bundle/main.js"]
